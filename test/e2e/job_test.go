//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestJob is about what a job finds around it and leaves behind, on the machine itself.
func TestJob(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	t.Run("runs as its user", func(t *testing.T) { runsAsItsUser(t, c.For(t)) })
	t.Run("output names", func(t *testing.T) { outputNames(t, c.For(t)) })
	t.Run("append and truncate", func(t *testing.T) { appendAndTruncate(t, c.For(t)) })
	t.Run("arguments and input", func(t *testing.T) { argumentsAndInput(t, c.For(t)) })
	t.Run("output that cannot be opened", func(t *testing.T) { unopenable(t, c.For(t)) })
	t.Run("nothing outlives a job", func(t *testing.T) { nothingOutlives(t, c.For(t)) })
	t.Run("temporary folder", func(t *testing.T) { temporaryFolder(t, c.For(t)) })
	t.Run("exit codes", func(t *testing.T) { exitCodes(t, c.For(t)) })
	c.WaitClean()
}

func runsAsItsUser(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	u, err := user.Lookup(alice)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(groups)
	out := filepath.Join(c.Work, "who-%j.out")
	id := p.Sbatch("-o", out, "--wrap",
		`id -u; id -g; id -G | tr ' ' '\n' | sort | tr '\n' ' '; echo; echo $HOME; echo $USER; pwd; echo `+
			`$SLURM_JOB_USER; cat /proc/self/loginuid >/dev/null; umask`)
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Fatalf("ended %v: %s", j.State, j.Message)
	}
	file := strings.ReplaceAll(out, "%j", id)
	got := strings.Split(strings.TrimSpace(read(t, file)), "\n")
	want := []string{u.Uid, u.Gid, strings.Join(groups, " ") + " ", u.HomeDir, alice, c.Work, alice}
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			t.Errorf("line %d of the job's account of itself: want %q in\n%s", i+1, w, strings.Join(got, "\n"))
			break
		}
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if owner := fmt.Sprint(ownerOf(st)); owner != u.Uid {
		t.Errorf("the output file belongs to uid %s, not %s", owner, u.Uid)
	}
	// As root nobody else's name may be taken, and an ordinary user cannot be root.
	if got := strings.TrimSpace(c.Root().Run("srun", "id", "-un")); got != "root" {
		t.Errorf("root's job runs as %q", got)
	}
	if got := strings.TrimSpace(p.Run("srun", "id", "-un")); got != alice {
		t.Errorf("srun of %s runs as %q", alice, got)
	}
}

func outputNames(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	dir := filepath.Join(c.Work, "names")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	p = p.In(dir)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ = strings.Cut(host, ".")
	one := p.Sbatch("-J", "named", "-o", "%x.%u.%N.%j.%%.%5j.out", "-e", "err-%A.txt", "--wrap",
		"echo to stdout; echo to stderr >&2")
	array := p.Sbatch("-a", "1-3", "-o", "a-%A_%a.out", "--wrap", "echo task $SLURM_ARRAY_TASK_ID")
	plain := p.Sbatch("--wrap", "echo plain; echo err >&2")
	for _, id := range []string{one, plain, array + "_1", array + "_2", array + "_3"} {
		if j := c.WaitEnd(id); j.State != core.Completed {
			t.Errorf("job %s ended %v: %s", id, j.State, j.Message)
		}
	}
	n := one
	for len(n) < 5 {
		n = "0" + n
	}
	for name, want := range map[string]string{
		fmt.Sprintf("named.%s.%s.%s.%%.%s.out", alice, host, one, n): "to stdout\n",
		"err-" + one + ".txt":     "to stderr\n",
		"a-" + array + "_2.out":   "task 2\n",
		"slurm-" + plain + ".out": "plain\nerr\n",
	} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			list, _ := filepath.Glob(dir + "/*")
			t.Errorf("%v; there are %v", err, list)
		} else if string(b) != want {
			t.Errorf("%s holds %q, want %q", name, b, want)
		}
	}
}

func appendAndTruncate(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	file := filepath.Join(c.Work, "again.out")
	for _, mode := range []string{"truncate", "append"} {
		c.WaitEnd(p.Sbatch("-o", file, "--open-mode", mode, "--wrap", "echo "+mode))
	}
	if got := read(t, file); got != "truncate\nappend\n" {
		t.Errorf("after appending: %q", got)
	}
	c.WaitEnd(p.Sbatch("-o", file, "--open-mode", "truncate", "--wrap", "echo new"))
	if got := read(t, file); got != "new\n" {
		t.Errorf("after truncating: %q", got)
	}
}

func argumentsAndInput(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := write(t, filepath.Join(c.Work, "args.sh"),
		"#!/bin/bash\n#SBATCH -J from-script -o args.out\necho \"$# $1 $2\"; cat; echo $SLURM_JOB_NAME; echo $MINE\n")
	input := write(t, filepath.Join(c.Work, "input.txt"), "from a file\n")
	id := p.With("MINE=exported").Sbatch("-i", input, script, "a b", "c")
	c.WaitEnd(id)
	if got := read(t, filepath.Join(c.Work, "args.out")); got != "2 a b c\nfrom a file\nfrom-script\nexported\n" {
		t.Errorf("the script saw %q", got)
	}
	if r := p.TryIn("for one\n", "srun", "-n2", "-l", "-i", "1", "cat"); r.Out != "1: for one\n" || r.Code != 0 {
		t.Errorf("input for one of two tasks: %+v", r)
	}
	r := p.TryIn("#!/bin/sh\necho by stdin\n", "sbatch", "--parsable", "-o", "stdin.out")
	c.WaitEnd(strings.TrimSpace(r.Out))
	if got := read(t, filepath.Join(c.Work, "stdin.out")); got != "by stdin\n" {
		t.Errorf("a script from standard input wrote %q: %v", got, r)
	}
}

func unopenable(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	path := "/nowhere/at/all.out"
	id := p.Sbatch("-o", path, "--wrap", "echo never")
	j := c.WaitEnd(id)
	if j.State != core.Failed {
		t.Errorf("ended %v", j.State)
	}
	wants(t, "bireme why", p.Run("bireme", "why", id), path, "o such file or directory")
	wants(t, "sacct", p.Run("sacct", "-P", "-n", "-j", id, "-o",
		"JobID,State,ExitCode,Comment,AdminComment,SystemComment"), "FAILED", "0:53", path, "o such file or directory")
	closed := filepath.Join("/root", "bireme-test.out")
	id = p.Sbatch("-o", closed, "--wrap", "echo never")
	c.WaitEnd(id)
	wants(t, "bireme why", p.Run("bireme", "why", id), closed, "ermission denied")
}

func nothingOutlives(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	mark := filepath.Join(c.Work, "daemon.pid")
	id := p.Sbatch("-o", "/dev/null", "--wrap",
		fmt.Sprintf("setsid sh -c 'echo $$ >%s; trap \"\" TERM HUP INT; while :; do sleep 1; done' </dev/null "+
			">/dev/null 2>&1 & while [ ! -s %s ]; do sleep 0.01; done", mark, mark))
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("ended %v: %s", j.State, j.Message)
	}
	if pid := read(t, mark); cluster.Runs(pid) {
		t.Errorf("process %s, which the job had sent into the background, outlived it", pid)
	}
}

func temporaryFolder(t *testing.T, c *cluster.Cluster) {
	out := filepath.Join(c.Work, "tmp-%u.out")
	script := `echo "$TMPDIR"; stat -c '%a %U' "$TMPDIR"; echo secret >"$TMPDIR/file"; mkdir -p "$TMPDIR/a/b"; chmod ` +
		`0 "$TMPDIR/a"`
	ids := []string{c.As(alice).Sbatch("-o", out, "--wrap", script), c.As(bob).Sbatch("-o", out, "--wrap", script)}
	var dirs []string
	for i, who := range []string{alice, bob} {
		c.WaitEnd(ids[i])
		got := strings.Split(read(t, filepath.Join(c.Work, "tmp-"+who+".out")), "\n")
		if len(got) < 2 || got[1] != "700 "+who {
			t.Errorf("the job of %s says of its TMPDIR: %q", who, got)
			continue
		}
		dirs = append(dirs, got[0])
		if _, err := os.Stat(got[0]); err == nil {
			t.Errorf("TMPDIR %s outlived its job", got[0])
		}
	}
	if len(dirs) == 2 && dirs[0] == dirs[1] {
		t.Errorf("two jobs shared the TMPDIR %s", dirs[0])
	}
}

func exitCodes(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	for script, want := range map[string]string{
		"exit 0":        "COMPLETED|0:0",
		"exit 3":        "FAILED|3:0",
		"kill -9 $$":    "FAILED|0:9",
		"kill -SEGV $$": "FAILED|0:11",
	} {
		id := p.Sbatch("-o", "/dev/null", "--wrap", script)
		c.WaitEnd(id)
		if got := p.Run("sacct", "-X", "-n", "-P", "-j", id, "-o", "State,ExitCode"); strings.TrimSpace(got) != want {
			t.Errorf("%s: sacct says %q, want %q", script, strings.TrimSpace(got), want)
		}
	}
	r := p.Try("sbatch", "-W", "-o", "/dev/null", "--wrap", "exit 6")
	refused(t, r, 6)
	refused(t, p.Try("srun", "sh", "-c", "exit 5"), 5, "task 0: Exited with exit code 5")
}
