//go:build e2e

package containers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// The users scripts/prereqs.sh adds.
const alice = "bireme-t1"

// docker is the engine of all tests here.
var docker *engine.Engine

func TestMain(m *testing.M) {
	engine.Main(m, func(e *engine.Engine) error {
		docker = e
		return importImages(e)
	})
}

// importImages imports the images of the tests into an engine.
func importImages(e *engine.Engine) error {
	files, err := engine.BusyBox()
	if err != nil {
		return err
	}
	if err := e.Import("box:1", files, `CMD ["/bin/sh","-c","echo the image speaks"]`, "ENV KIND=image",
		"WORKDIR /home/app"); err != nil {
		return err
	}
	// An image without a shell: one program and nothing else.
	var tool []engine.File
	for _, f := range files {
		if f.Path == "bin/busybox" {
			tool = []engine.File{{Path: "busybox", Mode: 0o755, Data: f.Data}}
		}
	}
	return e.Import("tool:1", tool, `ENTRYPOINT ["/busybox","echo"]`, `CMD ["alone"]`)
}

// start starts a cluster whose node uses the engine.
func start(t *testing.T, opt cluster.Options) *cluster.Cluster {
	t.Helper()
	opt.Args = append(opt.Args, "--engine", docker.Socket)
	return cluster.Start(t, opt)
}

// apply writes a task and applies it.
func apply(t *testing.T, p *cluster.Person, dir, name, yaml string, flags ...string) cluster.Result {
	t.Helper()
	file := filepath.Join(dir, name+".dstack.yml")
	if err := os.WriteFile(file, []byte("type: task\nname: "+name+"\n"+yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	return p.Try("bireme", append([]string{"apply", "-y", "-f", file}, flags...)...)
}

// jobOf is the last job of a run.
func jobOf(t *testing.T, c *cluster.Cluster, run string) string {
	t.Helper()
	list, err := c.Client(5*time.Second).Runs(t.Context(), "", run)
	if err != nil || len(list.Runs) == 0 {
		t.Fatalf("run %s: %v", run, err)
	}
	jobs := list.Runs[0].Jobs
	return fmt.Sprint(jobs[len(jobs)-1])
}

// left waits until the engine has no container any more.
func left(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	c.Eventually("no container is left", func() (bool, string) {
		list, err := docker.Call("GET", "/containers/json?all=1")
		return err == nil && strings.TrimSpace(list) == "[]", fmt.Sprint(list, err)
	})
}

func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// open makes the file that a job waits for.
func open(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}
