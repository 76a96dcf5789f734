//go:build e2e

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// TestNoWayOut: whatever a user says of a container, its programs run inside it and as nobody else.
func TestNoWayOut(t *testing.T) {
	c := start(t, cluster.Options{})
	p := c.As(alice)
	uid := strings.TrimSpace(runTool(t, "id", "-u", alice))
	mine := filepath.Join(c.Work, "mine")
	if err := os.Mkdir(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(mine, 0o777); err != nil {
		t.Fatal(err)
	}
	// Whoever runs it tells who it is.
	spy := filepath.Join(mine, "spy")
	if err := os.WriteFile(spy, []byte("#!/bin/sh\n/bin/id -u > /m/spied\nexec sleep 60\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spied := func() string {
		b, err := os.ReadFile(filepath.Join(mine, "spied"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, engine.File{Path: "a", Mode: 0o755}, engine.File{Path: "a/b", Mode: 0o777, Link: "/.bireme"})
	if err := docker.Import("link:1", files); err != nil {
		t.Fatal(err)
	}
	if err := docker.Import("checked:1", files, `HEALTHCHECK --interval=100ms --retries=1000 CMD sh /m/spy`); err != nil {
		t.Fatal(err)
	}

	t.Run("programs of tasks", func(t *testing.T) {
		c := c.For(t)
		id := p.Sbatch("-o", filepath.Join(mine, "up"), "--container-image=box:1", "--wrap", "echo up; sleep 100")
		c.Eventually("it runs", func() (bool, string) {
			b, _ := os.ReadFile(filepath.Join(mine, "up"))
			return string(b) == "up\n", string(b)
		})
		conf := filepath.Join(mine, "conf")
		if err := os.WriteFile(conf, []byte("0 /bin/sh -c 'id -u; echo $KIND; pwd'\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := p.Try("srun", "--jobid="+id, "--overlap", "--chdir=/tmp", "--multi-prog", conf)
		if want := uid + "\nimage\n"; r.Code != 0 || !strings.HasPrefix(r.Out, want) {
			t.Errorf("a program of its own for each task: %v, want %q", r, want)
		}
		p.Run("scancel", id)
		c.WaitEnd(id)
	})
	t.Run("health check of the image", func(t *testing.T) {
		c := c.For(t)
		id := p.Sbatch("-o", "/dev/null", "--container-image=checked:1", "--container-mounts="+mine+":/m", "--wrap",
			"sleep 100")
		c.Eventually("it runs", func() (bool, string) {
			s, err := docker.Find(id + ".1.batch")
			return s != "", fmt.Sprint(err)
		})
		name, err := docker.Find(id + ".1.batch")
		if err != nil {
			t.Fatal(err)
		}
		one, err := docker.Call("GET", "/containers/"+name+"/json")
		if err != nil || !strings.Contains(one, `"Test":["NONE"]`) || strings.Contains(one, `"Health":`) {
			t.Errorf("the engine runs the image's health check: %v %s", err, one)
		}
		p.Run("scancel", id)
		c.WaitEnd(id)
		if who := spied(); who != "" {
			t.Errorf("the health check ran, as %s", who)
		}
	})
	t.Run("mount over our own program", func(t *testing.T) {
		c := c.For(t)
		// Also under a umask that lets nobody in.
		id := strings.TrimSpace(p.Run("/bin/sh", "-c", `umask 077; exec sbatch --parsable "$@"`, "sbatch", "-o",
			"/dev/null", "--container-image=link:1",
			"--container-mounts="+mine+":/m,"+spy+":/a/b/init", "--wrap", "id -u > /m/inside"))
		if j := c.WaitEnd(id); j.State != core.Completed {
			t.Errorf("it is %s: %s", j.State, j.Message)
		}
		if who := spied(); who != "" {
			t.Errorf("the user's program ran in the place of bireme-init, as %s", who)
		}
		if b, err := os.ReadFile(filepath.Join(mine, "inside")); err != nil || strings.TrimSpace(string(b)) != uid {
			t.Errorf("the job ran as %q, want %s: %v", b, uid, err)
		}
	})
	t.Run("low ports", func(t *testing.T) {
		c := c.For(t)
		out := filepath.Join(mine, "port")
		id := p.Sbatch("-o", out, "--container-image=box:1", "--wrap",
			"cat /proc/sys/net/ipv4/ip_unprivileged_port_start; httpd -p 700")
		j := c.WaitEnd(id)
		if b, err := os.ReadFile(out); err != nil || j.State != core.Failed ||
			!strings.HasPrefix(string(b), "1024\n") || !strings.Contains(string(b), "Permission denied") {
			t.Errorf("a user's job is %s with a port that is root's: %v\n%s", j.State, err, b)
		}
	})
	left(t, c)
}
