//go:build e2e

package containers

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
	"bireme.dev/bireme/test/engine"
)

// TestImages: fetched before anybody asks, told of while they come, recorded by content, removed when there are too
// many.
func TestImages(t *testing.T) { images(t, true) }

// images pulls, keeps and removes images; counted says whether the engine tells how many bytes have come.
func images(t *testing.T, counted bool) {
	fake := engine.NewFakeRegistry("", "")
	defer fake.Close()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	refs := map[string]string{}
	for _, name := range []string{"wanted", "first", "second", "third"} {
		// each another content
		own := append(files[:len(files):len(files)], engine.File{Path: "name", Mode: 0o644, Data: []byte(name)})
		if refs[name], err = fake.Add(name+":1", own); err != nil {
			t.Fatal(err)
		}
	}
	has := func(ref string) bool {
		_, err := docker.Call("GET", "/images/"+ref+"/json")
		return err == nil
	}
	c := start(t, cluster.Options{Set: []string{"step.image_cache=3MB", "step.prefetch=" + refs["wanted"]}})
	p := c.Root()
	c.Eventually("what is wanted is there", func() (bool, string) { return has(refs["wanted"]), "no" })

	fake.Hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(fake.Hold) })
	defer release() // the registry ends only after its last answer
	apply(t, p, c.Work, "slow", "image: "+refs["first"]+"\ncommands: [cat /name]\n", "-d")
	id := jobOf(t, c, "slow")
	c.Eventually("it is told what is done", func() (bool, string) {
		why := p.Run("bireme", "why", id)
		return strings.Contains(why, "fetching image "+refs["first"]), why
	})
	c.Eventually("the run is pulling", func() (bool, string) {
		var run struct {
			Status string
			Latest struct {
				Status string
				Pull   struct {
					Done  int64 `json:"downloaded_bytes"`
					Total int64 `json:"total_bytes"`
					Final bool  `json:"is_total_bytes_final"`
				} `json:"image_pull_progress"`
			} `json:"latest_job_submission"`
		}
		out := p.Run("bireme", "run", "get", "slow", "--json")
		err := json.Unmarshal([]byte(out), &run)
		pull := &run.Latest.Pull
		return err == nil && run.Status == "provisioning" && run.Latest.Status == "pulling" &&
			(!counted || pull.Done > 0 && pull.Done < pull.Total && pull.Final), out
	})
	release()
	j := c.WaitEnd(id)
	if j.State != core.Completed || !strings.Contains(j.Image, "@sha256:") {
		t.Errorf("it is %s, of image %q: %s", j.State, j.Image, j.Message)
	}
	if r := apply(t, p, c.Work, "next", "image: "+refs["second"]+"\ncommands: [cat /name]\n"); r.Out != "second" {
		t.Errorf("%v", r)
	}
	c.Eventually("the one used before is removed", func() (bool, string) {
		return !has(refs["first"]) && has(refs["second"]) && has(refs["wanted"]),
			fmt.Sprint(has(refs["first"]), has(refs["second"]), has(refs["wanted"]))
	})
	// One that goes away while its image comes is gone, and nothing of it stays. (Of an image that was removed the
	// engine may still have the content.)
	fake.Hold = make(chan struct{})
	apply(t, p, c.Work, "impatient", "image: "+refs["third"]+"\ncommands: [cat /name]\n", "-d")
	id = jobOf(t, c, "impatient")
	c.Eventually("it is being fetched", func() (bool, string) {
		why := p.Run("bireme", "why", id)
		return strings.Contains(why, "fetching image"), why
	})
	p.Run("bireme", "stop", "-y", "impatient")
	if j := c.WaitEnd(id); j.State != core.Cancelled {
		t.Errorf("it is %s: %s", j.State, j.Message)
	}
	close(fake.Hold)
	left(t, c)
}

// TestEngineDies: a daemon that dies takes no job with it; what the next one kills is noticed, and nothing stays.
func TestEngineDies(t *testing.T) {
	own, err := engine.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	}()
	files, err := engine.BusyBox()
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Import("box:1", files); err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Options{Args: []string{"--engine", own.Socket, "--cpus", "4"}})
	p := c.Root()
	for _, run := range []string{"through", "caught"} {
		apply(t, p, c.Work, run, fmt.Sprintf(
			"image: box:1\nvolumes: [\"%s:/w\"]\ncommands: [echo up, \"while ! test -e /w/%s; do sleep 0.05; done; "+
				"echo done\"]\n", c.Work, run), "-d")
		c.Eventually(run+" runs", func() (bool, string) {
			out := p.Try("bireme", "logs", run)
			return out.Out == "up\n", out.String()
		})
	}
	if err := own.Kill(); err != nil {
		t.Fatal(err)
	}
	open(t, c.Work, "through")
	if j := c.WaitEnd(jobOf(t, c, "through")); j.State != core.Completed {
		t.Errorf("while no engine was there it became %s: %s", j.State, j.Message)
	}
	if j := c.Job(jobOf(t, c, "caught")); j.State != core.Running {
		t.Errorf("its neighbour is %s: %s", j.State, j.Message)
	}
	if err := own.Up(t.Context()); err != nil { // without live-restore it ends what it finds
		t.Fatal(err)
	}
	if j := c.WaitEnd(jobOf(t, c, "caught")); j.State != core.Failed {
		t.Errorf("what the new engine killed is %s: %s", j.State, j.Message)
	}
	c.Eventually("no container is left", func() (bool, string) {
		list, err := own.Call("GET", "/containers/json?all=1")
		return err == nil && strings.TrimSpace(list) == "[]", fmt.Sprint(list, err)
	})
	if r := apply(t, p, c.Work, "again", "image: box:1\ncommands: [echo well]\n"); r.Out != "well\n" {
		t.Errorf("with the new engine: %v", r)
	}
}
