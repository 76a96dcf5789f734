//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestWordsOfErrors: bad input is answered in Slurm's words, with its exit codes.
func TestWordsOfErrors(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 4, Memory: "2G"})
	p := c.As(alice)
	script := func(name, text string) string { return write(t, filepath.Join(c.Work, name), text) }
	empty, blank, plain, dos := script("empty", ""), script("blank", " \n\t\n"), script("plain", "true\n"),
		script("dos", "#!/bin/sh\r\ntrue\r\n")
	stray, quote := script("stray", "#!/bin/sh\n#SBATCH foo\n"), script("quote", "#!/bin/sh\n#SBATCH \"abc\n")

	type words struct {
		args string
		says string
		code int
	}
	// What the commands themselves refuse.
	for _, x := range []words{
		{"--time=abc", "Invalid --time specification", 255},
		{"--mem=x", "Invalid --mem specification", 255},
		{"--begin=xx", "Invalid --begin specification", 255},
		{"--signal=XX", "Invalid --signal specification", 255},
		{"--mail-type=xx", "Invalid --mail-type specification", 255},
		{"--distribution=xx", "Invalid --distribution specification", 255},
		{"--open-mode=xx", "Invalid --open-mode specification", 255},
		{"--uid=nobody-of-that-name", "Invalid --uid specification", 255},
		{"-N5-2", "Maximum node count 2 is less than minimum node count 5", 255},
		{"-n0", `Invalid numeric value "0" for --ntasks.`, 1},
		{"-c0", `Invalid numeric value "0" for --cpus-per-task.`, 1},
		{"--hint=foo", `unrecognized --hint argument "foo", see --hint=help`, 1},
	} {
		for _, tool := range []string{"sbatch", "salloc", "srun"} {
			if tool != "sbatch" && strings.HasPrefix(x.args, "--open-mode") && tool == "salloc" {
				continue // it has no such option
			}
			args := append(strings.Fields(x.args), "true")
			refused(t, p.Try(tool, args...), x.code, tool+": error: "+x.says+"\n")
		}
	}
	for _, x := range []words{
		{"--wrap=true x", "sbatch: error: Script arguments not permitted with --wrap option", 1},
		{"nothing-here.sh", "sbatch: error: Unable to open file nothing-here.sh", 1},
		{empty, "sbatch: error: Batch script is empty!", 1},
		{blank, "sbatch: error: Batch script contains only whitespace!", 1},
		{plain, "sbatch: error: This does not look like a batch script.  The first", 1},
		{dos, "sbatch: error: Batch script contains DOS line breaks (\\r\\n)", 1},
		{stray, "sbatch: error: Invalid directive found in batch script: foo", 255},
		{quote, "sbatch: fatal: quote: line 2: Unmatched `\"` in [ \"abc]", 1},
		{"--nosuch", "sbatch: unrecognized option '--nosuch'", 255},
		{"--no=1", "sbatch: option '--no=1' is ambiguous", 255},
	} {
		begins(t, p.Try("sbatch", strings.Fields(x.args)...), x.code, x.says)
	}
	for _, tool := range []string{"sbatch", "salloc", "srun"} {
		wants(t, tool+" --hint=help", p.Run(tool, "--hint=help"), "nomultithread")
		wants(t, tool+" --gres=help", p.Run(tool, "--gres=help"), "gpu:a100:2")
	}
	begins(t, p.Try("srun"), 1, "srun: fatal: No command given to execute.")

	// What the cluster refuses.
	for _, x := range []words{
		{"-p nosuch", "invalid partition specified: nosuch\nInvalid partition name specified", 1},
		{"-C nosuch", "Invalid feature specification", 1},
		{"-L nosuch", "Invalid license specification", 1},
		{"-w nosuch", "Invalid node name specified", 1},
		{"--mem=100G", "Memory specification can not be satisfied\nRequested node configuration is not available", 1},
		{"-n100", "Requested node configuration is not available", 1},
		{"-d bogus:1", "Job dependency problem", 1},
		{"--reservation=nosuch", "Requested reservation is invalid", 1},
	} {
		for tool, before := range map[string]string{
			"sbatch": "Batch job submission failed: ", "salloc": "Job submit/allocate failed: ",
			"srun": "Unable to allocate resources: ",
		} {
			lines := strings.Split(x.says, "\n")
			last := len(lines) - 1
			lines[last] = before + lines[last]
			args := append(strings.Fields(x.args), "true")
			if tool == "sbatch" {
				args = append(strings.Fields(x.args), "--wrap=true")
			}
			begins(t, p.Try(tool, args...), x.code, tool+": error: "+strings.Join(lines, "\n"+tool+": error: "))
		}
	}
	begins(t, p.Try("sbatch", "--gres=foo:1", "--wrap=true"), 1,
		"sbatch: error: Invalid generic resource (gres) specification\n")
	begins(t, p.Try("sbatch", "--array=5-1", "--wrap=true"), 1,
		"sbatch: error: Batch job submission failed: Invalid job array specification")
}

// begins checks the exit code of a command and how its messages begin.
func begins(t *testing.T, r cluster.Result, code int, says string) {
	t.Helper()
	if r.Code != code || !strings.HasPrefix(r.Err, says) {
		t.Errorf("%s: exit code %d, not %d; it says %q, not %q", r.Line, r.Code, code, r.Err, says)
	}
}

// TestSteeringFromInside: whoever owns a job steers it from inside another of theirs, and nobody else's.
func TestSteeringFromInside(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 4, Memory: "2G"})
	p := c.As(alice)
	other := c.As(bob).Sbatch("--begin=now+1hour", "--wrap=true")
	mine := p.Sbatch("--begin=now+1hour", "-t60", "--wrap=true")
	script := write(t, filepath.Join(c.Work, "steer.sh"), fmt.Sprintf(`#!/bin/bash
set -e
scontrol hold %[1]s
squeue -h -j %[1]s -o %%r
scontrol release %[1]s
scontrol update JobId=%[1]s TimeLimit=30 Nice=50 JobName=renamed
squeue -h -j %[1]s -o '%%l %%y %%j'
scontrol show hostnames n[1-3],m2 | paste -sd' '
scontrol show hostlist n1,n2,n3
scontrol update JobId=$SLURM_JOB_ID TimeLimit=5
scontrol show job $SLURM_JOB_ID | grep -o TimeLimit=.* | cut -d' ' -f1
scancel %[1]s
set +e
for verb in hold release requeue; do scontrol $verb %[2]s; echo $?; done
scontrol update JobId=%[2]s TimeLimit=1; echo $?
scancel %[2]s; echo $?
`, mine, other))
	job := p.Sbatch("-t10", "-o", filepath.Join(c.Work, "steer.out"), script)
	if j := c.WaitState(job, core.Completed); j.State != core.Completed {
		t.Errorf("job %s: %v", job, j.State)
	}
	want := strings.Join([]string{
		"JobHeldUser", "30:00 50 renamed", "n1 n2 n3 m2", "n[1-3]", "TimeLimit=00:05:00",
		"Invalid user id for job " + other, // as Slurm: "denied" is scancel's word
	}, "\n")
	text := read(t, filepath.Join(c.Work, "steer.out"))
	if !strings.HasPrefix(text, want) || strings.Count(text, "Invalid user id for job "+other) != 4 ||
		!strings.HasSuffix(text, "Access/permission denied\n210\n") {
		t.Errorf("it wrote %q", text)
	}
	c.WaitState(mine, core.Cancelled)
	c.As(bob).Run("scancel", other)
	c.WaitClean()
}

// TestGroup: administrators choose the group of a job, others do not.
func TestGroup(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 1, CPUs: 2, Memory: "1G"})
	if got := c.As("root").Run("srun", "--uid="+alice, "--gid=games", "sh", "-c",
		"id -un; id -gn; echo $SLURM_JOB_GID"); got != alice+"\ngames\n60\n" {
		t.Errorf("it ran as %q", got)
	}
	p := c.As(alice)
	begins(t, p.Try("srun", "--gid=games", "true"), 1, "srun: error: only an administrator may choose the group of a "+
		"job\nsrun: error: Unable to allocate resources: Access/permission denied")
	begins(t, p.Try("sbatch", "--gid=nosuch", "--wrap=true"), 255, "sbatch: error: Invalid --gid specification")
	c.WaitClean()
}

// TestTaskHooks: a task prolog sets what its task sees; an epilog runs after it.
func TestTaskHooks(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "1G"})
	p := c.As(alice)
	before := write(t, filepath.Join(c.Work, "before"),
		"#!/bin/sh\necho export SEEN=$SLURM_PROCID on $SLURMD_NODENAME\necho unset WORD\necho print ready\n")
	after := write(t, filepath.Join(c.Work, "after"), "#!/bin/sh\necho $(id -un) >$0.$SLURM_PROCID\n")
	chmod(t, before, after)
	out := p.With("WORD=here").Run("srun", "-N2", "-l", "--task-prolog="+before, "--task-epilog="+after, "sh", "-c",
		"echo $SEEN ${WORD-none}")
	for _, line := range []string{"0: ready\n", "0: 0 on n1 none\n", "1: ready\n", "1: 1 on n2 none\n"} {
		if !strings.Contains(out, line) {
			t.Errorf("%q is not in %q", line, out)
		}
	}
	for _, rank := range []string{"0", "1"} {
		if got := read(t, after+"."+rank); got != alice+"\n" {
			t.Errorf("the epilog of task %s wrote %q", rank, got)
		}
	}
	bad := write(t, filepath.Join(c.Work, "bad"), "#!/bin/sh\nexit 7\n")
	chmod(t, bad)
	refused(t, p.Try("srun", "--task-prolog="+bad, "true"), 7, "TaskProlog failed")
	c.WaitClean()
}

func chmod(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
