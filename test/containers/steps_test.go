//go:build e2e

package containers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestSteps is what users see of steps in containers: their own, or their job's.
func TestSteps(t *testing.T) {
	c := start(t, cluster.Options{
		Nodes: 2, CPUs: 4, Memory: "2G",
		Set: []string{"gpu.sample=200ms", "step.constrain_mem=true"},
	})
	for _, tc := range []struct {
		name string
		test func(*testing.T, *cluster.Cluster)
	}{
		{"own", stepsOwn},
		{"in a job", stepsInJob},
		{"ends", stepsEnd},
		{"salloc", stepsAlloc},
		{"pmi", stepsPMI},
		{"limits", stepsLimits},
		{"usage", usageInside},
	} {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, c.For(t)) })
	}
	left(t, c)
	c.WaitClean()
}

// lines returns the lines of a text, sorted.
func lines(text string) []string {
	list := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(list)
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// stepsOwn: srun without a job has a container on each node for all tasks there.
func stepsOwn(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	uid := strings.TrimSpace(runTool(t, "id", "-u", alice))
	out := p.Run("srun", "-N2", "--ntasks-per-node=2", "--container-image=box:1", "sh", "-c",
		"echo $SLURM_PROCID $SLURMD_NODENAME $KIND $(id -u) $(cat /etc/hostname)")
	boxes := map[string]bool{}
	for i, line := range lines(out) {
		f := strings.Fields(line)
		if len(f) != 5 || strings.Join(f[:4], " ") != fmt.Sprintf("%d n%d image %s", i, i/2+1, uid) {
			t.Fatalf("task %d wrote %q of %s", i, line, out)
		}
		boxes[f[4]] = true
	}
	if len(boxes) != 2 {
		t.Errorf("4 tasks on 2 nodes ran in %d containers: %s", len(boxes), out)
	}
	if r := p.TryIn("a\nb\n", "srun", "--container-image=box:1", "wc", "-l"); r.Code != 0 ||
		strings.TrimSpace(r.Out) != "2" {
		t.Errorf("with input: %v", r)
	}
}

// stepsInJob: a script on the node runs a step in an image, which is how pyxis is mostly used.
func stepsInJob(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "steps.out")
	id := p.Sbatch("-N2", "-o", out, "--wrap",
		`echo script ${KIND-node}; "$BIREME_EXE" srun -N2 --container-image=box:1 --container-workdir=/tmp sh -c `+
			`'echo step $KIND $PWD'`)
	if j := c.WaitEnd(id); j.State != core.Completed {
		t.Errorf("it is %s: %s", j.State, j.Message)
	}
	if got := lines(read(t, out)); !slices.Equal(got, []string{"script node", "step image /tmp", "step image /tmp"}) {
		t.Errorf("%q", got)
	}
}

// stepsEnd: a task's end is its own, and what cannot be made is told.
func stepsEnd(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	r := p.Try("srun", "-n3", "--container-image=box:1", "sh", "-c",
		"test $SLURM_PROCID != 1 || exit 3; echo well $SLURM_PROCID")
	if r.Code != 3 || !slices.Equal(lines(r.Out), []string{"well 0", "well 2"}) {
		t.Errorf("one of three fails: %v", r)
	}
	if r := p.Try("srun", "--container-image=box:1", "sh", "-c", "kill -9 $$"); r.Code != 137 {
		t.Errorf("killed: %v", r)
	}
	r = p.Try("srun", "--container-image=127.0.0.1:1/none:1", "true")
	if r.Code == 0 || !strings.Contains(r.Err, "127.0.0.1:1/none:1") {
		t.Errorf("no image: %v", r)
	}
	r = p.Try("srun", "--container-image=box:1", "no-such-program")
	if r.Code != 127 || !strings.Contains(r.Err, "the image has no such program") {
		t.Errorf("no program: %v", r)
	}
	left(t, c)
}

// stepsAlloc: an allocation in an image has its containers as long as it lasts.
func stepsAlloc(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	script := fmt.Sprintf("%[1]s -N2 sh -c 'echo $KIND $SLURMD_NODENAME > /tmp/kept' && %[1]s -N2 cat /tmp/kept",
		filepath.Join(c.Links, "srun"))
	r := p.Try("salloc", "-N2", "--container-image=box:1", "sh", "-c", script)
	if r.Code != 0 || !slices.Equal(lines(r.Out), []string{"image n1", "image n2"}) {
		t.Errorf("%v", r)
	}
	left(t, c)
}

// stepsPMI: tasks find those on other nodes by what srun serves.
func stepsPMI(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	const talk = `echo "cmd=init pmi_version=1 pmi_subversion=1" >&$PMI_FD; read a <&$PMI_FD
echo "cmd=barrier_in" >&$PMI_FD; read b <&$PMI_FD; echo "$PMI_RANK of $PMI_SIZE: $a; $b"
echo "cmd=finalize" >&$PMI_FD; read c <&$PMI_FD`
	r := p.Try("srun", "-N2", "-n2", "--mpi=pmi2", "--container-image=box:1", "sh", "-c", talk)
	got := lines(r.Out)
	if r.Code != 0 || len(got) != 2 {
		t.Fatalf("%v", r)
	}
	for i, line := range got {
		wants(t, "a task's talk", line, fmt.Sprintf("%d of 2: cmd=response_to_init", i), "rc=0; cmd=barrier_out")
	}
}

// stepsLimits: the limits of the submitting shell hold inside.
func stepsLimits(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "limits.out")
	cmd := p.Command(t.Context(), "sbatch", "--parsable", "-o", out, "--propagate=NOFILE,CORE",
		"--container-image=box:1", "--wrap", "ulimit -n; ulimit -c")
	limited := exec.CommandContext(t.Context(), "/bin/sh",
		append([]string{"-c", `ulimit -S -n 733; ulimit -S -c 0; "$0" "$@"; exit $?`, cmd.Path}, cmd.Args[1:]...)...)
	limited.Env, limited.Dir, limited.SysProcAttr = cmd.Env, cmd.Dir, cmd.SysProcAttr
	b, err := limited.Output()
	if err != nil {
		t.Fatal(err)
	}
	j := c.WaitEnd(strings.TrimSpace(string(b)))
	if j.State != core.Completed {
		t.Errorf("it is %s: %s", j.State, j.Message)
	}
	if got := read(t, out); got != "733\n0\n" {
		t.Errorf("%q of %v", got, j.Spec.More().Rlimits)
	}
}

// usageInside: what is shown of a job that runs is its container's, not its stand-in's.
func usageInside(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	apply(t, p, c.Work, "eats", "image: box:1\nresources: {memory: 512MB..}\ncommands: [\"x=$(head -c 100000000 "+
		"/dev/zero | tr '\\\\000' x); echo up; sleep 1000\"]\n", "-d")
	c.Eventually("its memory is shown", func() (bool, string) {
		m, err := c.Client(0).Metrics(t.Context(), jobOf(t, c, "eats"))
		if err != nil || len(m.Samples) == 0 {
			return false, fmt.Sprint(err)
		}
		last := m.Samples[len(m.Samples)-1]
		return last.Mem > 90_000_000 && last.CPU > 0, fmt.Sprintf("%+v", last)
	})
	p.Run("bireme", "stop", "-y", "-x", "eats")
	c.WaitEnd(jobOf(t, c, "eats"))
}
