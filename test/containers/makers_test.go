//go:build e2e

package containers

import (
	"errors"
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

// TestFakeMakers: nodes without an engine run images by apptainer or enroot. The programs here are not the real ones:
// each notes its command line and its environment and runs, on the node, what it was told to run inside.
func TestFakeMakers(t *testing.T) {
	t.Parallel()
	for _, maker := range []string{"apptainer", "enroot"} {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("/tmp", "bm-") // the job's user must reach it
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			script := fmt.Sprintf(`#!/bin/sh
echo "$0 $*" >> %[1]s/calls
case "$*" in
*pull*missing*|*import*missing*) echo "FATAL: manifest unknown" >&2; exit 255;;
*pull*|*import*) for f; do case "$f" in *.new) echo image > "$f"; esac; done; exit;;
esac
while [ $# -gt 0 ]; do
	case "$1" in *.sif|*.sqsh) shift; break;; *:/.bireme/script:*) file=${1%%%%:*};;
	*:/tmp/b.txt:*) export BROUGHT=${1%%%%:*};;
	*destination=/tmp/b.txt*) BROUGHT=${1#*source=}; export BROUGHT=${BROUGHT%%%%\"*};; esac
	shift
done
case "$*" in *" /.bireme/script"*) shell=$1; shift 2; set -- $shell $file "$@";; esac
SECRET=${APPTAINERENV_SECRET-$SECRET} SLURM_JOB_ID=${APPTAINERENV_SLURM_JOB_ID-$SLURM_JOB_ID} exec "$@"
`, dir)
			program := filepath.Join(dir, maker)
			if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(program, 0o755); err != nil {
				t.Fatal(err)
			}
			calls := filepath.Join(dir, "calls") // the node's, too, and each user's
			if err := errors.Join(os.WriteFile(calls, nil, 0o666), os.Chmod(calls, 0o666)); err != nil {
				t.Fatal(err)
			}
			c := cluster.Start(t, cluster.Options{
				Memory: "8G", Args: []string{"--engine", maker, "--cpus", "4"}, Tools: dir,
				Set: []string{"step.constrain_mem=true", "step.image_cache=10", "step.prefetch=reg.example/wanted:1"},
			})
			files := func(folder string) int {
				names, err := filepath.Glob(filepath.Join(c.Dir, "nodes", c.Nodes()[0], "images", folder, "*.s[iq]*[fh]"))
				if err != nil {
					t.Fatal(err)
				}
				return len(names)
			}
			c.Eventually("what is wanted is there", func() (bool, string) { return files("shared") == 1, "no" })
			made(t, c, "reg.example/box:1")
			p := c.As(alice)
			c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container-image=reg.example/wanted:1", "--wrap", "true"))
			c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container-image=reg.example/second:1", "--wrap", "true"))
			uid := strings.TrimSpace(runTool(t, "id", "-u", alice))
			c.Eventually("the one not used for longest is removed", func() (bool, string) {
				return files(uid) == 1 && files("shared") == 1, fmt.Sprint(files(uid))
			})
			j := c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container-image=reg.example/missing:1", "--wrap", "true"))
			if j.State != core.Failed || !strings.Contains(j.Message, "image reg.example/missing:1: FATAL: manifest unknown") {
				t.Errorf("a missing image: %s: %q", j.State, j.Message)
			}
			b, err := os.ReadFile(calls)
			if err != nil {
				t.Fatal(err)
			}
			told := string(b)
			if n := strings.Count(told, "docker://reg.example"); n != 4 {
				t.Errorf("images were fetched %d times, want one by one:\n%s", n, told)
			}
			if strings.Contains(told, "s3cr3t") {
				t.Errorf("a command line holds a secret:\n%s", told)
			}
			wants(t, "the command line", told, map[string]string{
				"apptainer": " exec --containall --workdir ",
				"enroot":    " start --rw ",
			}[maker])
			c.WaitClean()
		})
	}
}

// TestMakers is the same with the real ones, where they are installed.
func TestMakers(t *testing.T) {
	for maker, tc := range map[string]struct {
		image string
		build []string
	}{
		"apptainer": {"box.sif", []string{"apptainer", "build", "box.sif", "root"}},
		"enroot":    {"box.sqsh", []string{"mksquashfs", "root", "box.sqsh", "-all-root", "-no-progress"}},
	} {
		t.Run(maker, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(maker)
			if err != nil {
				t.Skipf("there is no %s on this machine; Debian 12 has no package of it", maker)
			}
			c := cluster.Start(t, cluster.Options{
				Memory: "8G", Set: []string{"step.constrain_mem=true"},
				Args: []string{"--engine", maker, "--cpus", "4"}, Tools: filepath.Dir(program),
			})
			files, err := engine.BusyBox()
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range []string{"proc", "sys", "dev", "var"} {
				files = append(files, engine.File{Path: dir, Mode: 0o755})
			}
			root, image := filepath.Join(c.Work, "root"), filepath.Join(c.Work, tc.image)
			if err := engine.Write(root, files); err != nil {
				t.Fatal(err)
			}
			build := exec.Command(tc.build[0], tc.build[1:]...)
			build.Dir = c.Work
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v: %v: %s", tc.build, err, out)
			}
			if err := os.Chmod(image, 0o644); err != nil {
				t.Fatal(err)
			}
			made(t, c, image)
			// Inside there is the image and nothing of the node but what is mounted.
			p := c.As(alice)
			out := filepath.Join(c.Work, "inside")
			j := c.WaitEnd(p.Sbatch("-o", out, "--container-image="+image, "--container-mounts="+root+":/m:ro",
				"--container-workdir=/home/app",
				"--wrap", "pwd; ls /m/etc; test -e /usr/bin/apt || echo apart; touch /tmp/x && echo written"))
			b, err := os.ReadFile(out)
			if j.State != core.Completed || err != nil || string(b) != "/home/app\ngroup\npasswd\napart\nwritten\n" {
				t.Errorf("it is %s: %s: %q, %v", j.State, j.Message, b, err)
			}
			// ssh leads into a container like the job's.
			apply(t, p, c.Work, "desk", "image: "+image+"\nenv: [SECRET=s3cr3t-58]\ncommands: [echo up, sleep 100]\n", "-d")
			c.Eventually("it runs", func() (bool, string) {
				r := p.Try("bireme", "logs", "desk")
				return r.Out == "up\n", r.String()
			})
			if r := p.Try("bireme", "ssh", "desk", "test ! -e /usr/bin/apt && id -un; exit 4"); r.Code != 4 {
				t.Errorf("ssh: %v", r)
			}
			p.Run("bireme", "stop", "-y", "-x", "desk")
			c.WaitEnd(jobOf(t, c, "desk"))
			c.WaitClean()
		})
	}
}

// made is what users see of jobs in an image that a program of the node makes a container of.
func made(t *testing.T, c *cluster.Cluster, image string) {
	p := c.As(alice)
	out := filepath.Join(c.Work, "makers")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, _ := os.ReadFile(filepath.Join(out, name)) // not there yet: nothing
		return string(b)
	}
	run := func(name, script string, more ...string) string {
		t.Helper()
		file := filepath.Join(c.Work, name+".sh")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return p.Sbatch(append(append([]string{"-o", filepath.Join(out, name), "--container-image=" + image}, more...),
			file, "argument")...)
	}
	id := run("plain", `echo "$SLURM_JOB_ID $1 $SECRET $(id -u)"; exit 5`, "--export=ALL,SECRET=s3cr3t-55")
	if j := c.WaitEnd(id); j.State != core.Failed || j.Exit.Code != 5 {
		t.Errorf("it is %s %v: %s", j.State, j.Exit, j.Message)
	}
	if got, want := read("plain"), id+" argument s3cr3t-55 "+strings.TrimSpace(runTool(t, "id", "-u", alice))+
		"\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if r := apply(t, p, c.Work, "yaml", "image: "+image+
		"\nenv: [SECRET=s3cr3t-56]\ncommands: [echo of $SECRET, exit 3]\n"); r.Code != 3 || r.Out != "of s3cr3t-56\n" {
		t.Errorf("a YAML task: %v", r)
	}
	if err := os.WriteFile(filepath.Join(c.Work, "brought.txt"), []byte("brought along\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := apply(t, p, c.Work, "brings", "image: "+image+"\nfiles: ['brought.txt:/tmp/b.txt']\ncommands:\n"+
		"  - cat ${BROUGHT:-/tmp/b.txt}\n"); r.Code != 0 || r.Out != "brought along\n" {
		t.Errorf("files: %v", r)
	}
	if r := apply(t, p, c.Work, "other", "image: "+image+"\nuser: app\ncommands: [id]\n"); r.Code == 0 {
		t.Errorf("another user: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", jobOf(t, c, "other")),
		"as the job's user: another (app) needs Docker or Podman")
	id = run("greedy", "busybox dd if=/dev/zero of=/dev/null bs=300M count=1; echo never", "--mem=100M")
	if j := c.WaitEnd(id); j.State != core.OutOfMemory {
		t.Errorf("a greedy job is %s: %s", j.State, j.Message)
	}
	polite := run("polite", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done",
		"--export=ALL,SECRET=s3cr3t-57")
	c.Eventually("it runs", func() (bool, string) { s := read("polite"); return s == "up\n", s })
	for _, line := range commandLines(t) {
		if strings.Contains(line, "s3cr3t-57") && strings.Contains(line, image) && !strings.Contains(line, "sbatch") {
			t.Errorf("a command line holds a secret: %q", line)
		}
	}
	c.Kill("the agent", func() int { return c.Agent(c.Nodes()[0]) })
	c.Eventually("a step runs in a container too, by the next agent", func() (bool, string) {
		r := p.Try("srun", "--jobid="+polite, "--overlap", "sh", "-c", "echo step of $SLURM_JOB_ID")
		return r.Code == 0 && r.Out == "step of "+polite+"\n", r.String()
	})
	p.Run("scancel", "--signal=TERM", "--full", polite)
	// The signal goes to the maker's own processes too, which may end with another status than the script.
	if j := c.WaitEnd(polite); !strings.Contains(read("polite"), "bye\n") {
		t.Errorf("a polite job is %s: %s: %q", j.State, j.Message, read("polite"))
	}
	if j := c.WaitEnd(p.Sbatch("-o", "/dev/null", "--container-image=/no/such.sif", "--wrap",
		"true")); j.State != core.Failed || !strings.Contains(j.Message, "image /no/such.sif, as user") {
		t.Errorf("a missing file: %s: %q", j.State, j.Message)
	}
}
