//go:build e2e

package containers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
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
	left(t, c)
}
