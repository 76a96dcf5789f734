//go:build e2e

package containers

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// bundle makes an OCI bundle of BusyBox, with the configuration that a runtime itself proposes.
func bundle(t *testing.T, dir, runtime string) string {
	t.Helper()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "bundle")
	if err := engine.Write(filepath.Join(dir, "rootfs"), files); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(runtime, "spec")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s spec: %v: %s", runtime, err, out)
	}
	config := filepath.Join(dir, "config.json")
	b, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, bytes.Replace(b, []byte(`"readonly": true`), []byte(`"readonly": false`), 1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chown", "-R", alice, dir).CombinedOutput(); err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
	return dir
}

// TestBundles: sbatch --container runs a bundle by a real OCI runtime, as the job's user and in the job's cgroups.
func TestBundles(t *testing.T) {
	for _, name := range []string{"crun", "runc"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("there is no %s: scripts/prereqs.sh installs one", name)
			}
			if name == "crun" && hybrid(t) {
				t.Skip("this machine has cgroups of both versions, which crun 1.8 refuses")
			}
			c := cluster.Start(t, cluster.Options{
				Memory: "8G", Set: []string{"step.constrain_mem=true", "step.max_pids=40"},
				Args: []string{"--engine", "/no/such.sock", "--oci-runtime", program, "--cpus", "4"},
			})
			bundles(t, c, bundle(t, c.Work, program))
		})
	}
}

func bundles(t *testing.T, c *cluster.Cluster, dir string) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	run := func(name, script string, more ...string) string {
		t.Helper()
		file := filepath.Join(c.Work, name+".sh")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return p.Sbatch(append(append([]string{"-o", filepath.Join(out, name), "--container=" + dir}, more...), file,
			"argument")...)
	}
	// It sees the bundle and not the node; its program, variables and exit status are the job's.
	id := run(
		"plain",
		`cat /etc/passwd | grep -c app; test -e /home/bireme-t1 || echo apart; echo "$SLURM_JOB_ID $1 $MINE"; touch `+
			`/tmp/mine; exit 5`, "--export=ALL,MINE=s3cr3t-771")
	if j := c.WaitEnd(id); j.State != core.Failed || j.Exit.Code != 5 {
		t.Errorf("it is %s %v: %s", j.State, j.Exit, j.Message)
	}
	if got, want := read("plain"), "1\napart\n"+id+" argument s3cr3t-771\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if st := runTool(t, "stat", "-c", "%U", filepath.Join(dir, "rootfs/tmp/mine")); strings.TrimSpace(st) != alice {
		t.Errorf("what it wrote belongs to %s", st)
	}
	// Limits hold.
	id = run("greedy", "dd if=/dev/zero of=/dev/null bs=300M count=1; echo never", "--mem=100M")
	if j := c.WaitEnd(id); j.State != core.OutOfMemory {
		t.Errorf("a greedy job is %s: %s", j.State, j.Message)
	}
	// Who is asked to end may say goodbye; who runs on without an agent is found again.
	polite := run("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")
	c.Eventually("it runs", func() (bool, string) {
		b, err := os.ReadFile(filepath.Join(out, "polite"))
		return string(b) == "up\n", fmt.Sprint(string(b), err)
	})
	for _, f := range commandLines(t) {
		if strings.Contains(f, "s3cr3t") {
			t.Errorf("a command line holds a secret: %q", f)
		}
	}
	node := c.Nodes()[0]
	c.Kill("the agent", func() int { return c.Agent(node) })
	c.Eventually("a step runs in a container of the bundle, by the next agent", func() (bool, string) {
		r := p.Try("srun", "--jobid="+polite, "--overlap", "sh", "-c",
			"test -e /home/app && test ! -e /usr && echo step of $SLURM_JOB_ID")
		return r.Code == 0 && r.Out == "step of "+polite+"\n", r.String()
	})
	p.Run("scancel", "--signal=TERM", "--full", polite)
	if j := c.WaitEnd(polite); j.State != core.Completed || !strings.Contains(read("polite"), "bye\n") {
		t.Errorf("a polite job is %s: %s: %q", j.State, j.Message, read("polite"))
	}
	deaf := run("deaf", "trap '' TERM; echo up; while :; do sleep 0.05; done")
	c.Eventually("it runs", func() (bool, string) {
		b, err := os.ReadFile(filepath.Join(out, "deaf"))
		return string(b) == "up\n", fmt.Sprint(string(b), err)
	})
	p.Run("scancel", deaf)
	if j := c.WaitEnd(deaf); j.State != core.Cancelled {
		t.Errorf("a deaf job is %s: %s", j.State, j.Message)
	}
	// What is no bundle is told as such.
	for name, want := range map[string]string{
		"none": "no such file", "bad": "config.json: ",
		"rootless": "root.path is missing",
	} {
		broken := filepath.Join(c.Work, name)
		if text := map[string]string{"bad": "{", "rootless": "{}"}[name]; text != "" {
			if err := os.Mkdir(broken, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(broken, "config.json"), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		j := c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container="+broken, "--wrap", "true"))
		if j.State != core.Failed || !strings.Contains(j.Message, "bundle "+broken) || !strings.Contains(j.Message, want) {
			t.Errorf("%s: %s: %q", name, j.State, j.Message)
		}
	}
	c.WaitClean()
}

// hybrid reports whether version 2 of cgroups has controllers beside version 1.
func hybrid(t *testing.T) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(b), "0::") && strings.Count(string(b), "\n") > 1
}

// commandLines are those of all processes.
func commandLines(t *testing.T) (lines []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := os.ReadFile(name); err == nil { // processes come and go
			lines = append(lines, string(b))
		}
	}
	return lines
}

// TestNoRuntime: a node without an OCI runtime says so.
func TestNoRuntime(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{
		Args: []string{"--engine", "/no/such.sock", "--oci-runtime", "/no/such/runtime"},
	})
	p := c.As(alice)
	j := c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container=/", "--wrap", "true"))
	if j.State != core.Failed || !strings.Contains(j.Message, "needs an OCI runtime") {
		t.Errorf("it is %s: %q", j.State, j.Message)
	}
}

// TestBundleOnNodes: a job on several nodes has its place on each; its script runs on the first, its steps in bundles
// everywhere.
func TestBundleOnNodes(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("runc")
	if err != nil {
		t.Skip("there is no runc: scripts/prereqs.sh installs one with Docker")
	}
	c := cluster.Start(t, cluster.Options{
		Nodes: 2, CPUs: 4, Memory: "4G",
		Args: []string{"--engine", "/no/such.sock", "--oci-runtime", program},
	})
	dir, out := bundle(t, c.Work, program), filepath.Join(c.Work, "out")
	p := c.As(alice)
	id := p.Sbatch("-o", out, "-N2", "--container="+dir, "--wrap",
		"echo here; while ! test -e /tmp/go; do sleep 0.05; done; echo end")
	read := func() string {
		b, _ := os.ReadFile(out) // not there yet: nothing
		return string(b)
	}
	c.Eventually("it runs", func() (bool, string) { return read() == "here\n", read() })
	if r := p.Try("srun", "--jobid="+id, "--overlap", "-N2", "sh", "-c",
		"test -e /home/app && test ! -e /usr && echo in"); r.Code != 0 || r.Out != "in\nin\n" {
		t.Errorf("a step on both: %v", r)
	}
	open(t, filepath.Join(dir, "rootfs/tmp"), "go")
	if j := c.WaitEnd(id); j.State != core.Completed || read() != "here\nend\n" {
		t.Errorf("it is %s: %s: %q", j.State, j.Message, read())
	}
	c.WaitClean()
}
