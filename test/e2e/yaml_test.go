//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// TestYAML is the dstack tongue: apply, ps, logs, stop.
func TestYAML(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 2, CPUs: 2, Memory: "1G"})
	t.Run("attached", func(t *testing.T) { attached(t, c.For(t)) })
	t.Run("detached", func(t *testing.T) { detached(t, c.For(t)) })
	t.Run("nodes", func(t *testing.T) { twoNodes(t, c.For(t)) })
	t.Run("files", func(t *testing.T) { processFiles(t, c.For(t)) })
	t.Run("additions", func(t *testing.T) { additions(t, c.For(t)) })
	t.Run("checkpoint", func(t *testing.T) { checkpoints(t, c.For(t)) })
	c.WaitClean()
}

func attached(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	file := write(t, filepath.Join(c.Work, "task.dstack.yml"), `type: task
name: hello
env: [GREETING=Hello]
resources: {cpu: 1.., memory: 64MB..}
commands:
  - echo "$GREETING from $DSTACK_RUN_NAME, $(id -un) in $PWD"
  - exit 7
  - echo never
`)
	r := p.Try("bireme", "apply", "-y", "-f", file)
	if r.Code != 7 || r.Out != fmt.Sprintf("Hello from hello, %s in %s\n", alice, p.Home) {
		t.Errorf("an attached run: %v", r)
	}
	wants(t, "stderr", r.Err, "run hello, job ")
	wants(t, "logs", p.Run("bireme", "logs", "hello"), "Hello from hello")
	var list client.BriefList
	if err := json.Unmarshal([]byte(p.Run("bireme", "ps", "-a", "--json")), &list); err != nil || len(list.Jobs) != 1 ||
		list.Jobs[0].State != core.Failed {
		t.Errorf("ps -a --json: %v %+v", err, list)
	}
	wants(t, "sacct", p.Run("sacct", "-X", "-n", "-P", "-o", "JobName,State,ExitCode"), "hello|FAILED|7:0")
	refused(t, c.As(bob).Try("bireme", "logs", fmt.Sprint(list.Jobs[0].ID)), 4)
}

func detached(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	gate := filepath.Join(c.Work, "gate")
	file := write(t, filepath.Join(c.Work, "long.dstack.yml"), fmt.Sprintf(`type: task
name: long
stop_duration: 1s
commands:
  - for i in $(seq 1 2000); do echo "line $i"; done
  - while [ ! -e %s ]; do sleep 0.02; done
  - echo opened
  - sleep 600
`, gate))
	wants(t, "apply -d", p.Run("bireme", "apply", "-y", "-d", "-f", file), "run long, job ")
	again := p.Try("bireme", "apply", "-f", file)
	if again.Code != 0 {
		t.Errorf("a live run applied again without a change: %v", again)
	}
	wants(t, "apply again", again.Err, "Run long is running and has no changes.")

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	follow := p.Command(ctx, "bireme", "logs", "-f", "long")
	var out, errs bytes.Buffer
	follow.Stdout, follow.Stderr = &out, &errs
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	c.Eventually("the log has come so far", func() (bool, string) {
		got := p.Run("bireme", "logs", "long")
		return strings.Contains(got, "line 2000\n"), fmt.Sprint(len(got), " bytes")
	})
	wants(t, "ps", p.Run("bireme", "ps"), "long", "running")
	write(t, gate, "")
	c.Eventually("the log goes on", func() (bool, string) {
		got := p.Run("bireme", "logs", "long")
		return strings.HasSuffix(got, "opened\n"), fmt.Sprint(len(got), " bytes")
	})
	p.Run("bireme", "stop", "-y", "long")
	err := follow.Wait()
	var want strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	want.WriteString("opened\n")
	if err != nil || out.String() != want.String() {
		t.Errorf("logs -f ended with %v and %d bytes, want %d; it ends in %q; stderr %s", err, out.Len(), want.Len(),
			tail(out.String()), errs.String())
	}
	c.Eventually("the run has ended", func() (bool, string) {
		runs, err := c.Client(time.Second).Runs(t.Context(), "", "long")
		if err != nil || len(runs.Runs) == 0 {
			return false, fmt.Sprint(err)
		}
		return runs.Runs[0].Ended != 0, runs.Runs[0].State
	})
	refused(t, p.Try("bireme", "stop", "-y", "long"), 6, "ended")
}

func tail(s string) string {
	if len(s) > 200 {
		return s[len(s)-200:]
	}
	return s
}

func twoNodes(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	file := write(t, filepath.Join(c.Work, "two.dstack.yml"), `type: task
name: two
nodes: 2
commands:
  - echo "rank $DSTACK_NODE_RANK of $DSTACK_NODES_NUM on $(hostname)"
`)
	r := p.Try("bireme", "apply", "-y", "-f", file)
	if r.Code != 0 {
		t.Errorf("a run on two nodes: %v", r)
	}
	wants(t, "its output", r.Out, "rank 0 of 2 on n1", "rank 1 of 2 on n2")
}

// additions: every Slurm power is a key of the configuration.
// processFiles: files of runs of processes are in the working directory on each node, as the user's, and gone after it;
// nothing of the user's own is replaced.
func processFiles(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	write(t, filepath.Join(c.Work, "one.txt"), "one\n")
	if err := os.Mkdir(filepath.Join(c.Work, "code"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.Work, "code", "two.txt"), "two\n")
	file := write(t, filepath.Join(c.Work, "files.dstack.yml"), fmt.Sprintf(`type: task
name: files
nodes: 2
files:
  - one.txt:bireme-one.txt
  - code:~/bireme-code
  - one.txt:%s/made/three.txt
commands:
  - cat bireme-one.txt ~/bireme-code/two.txt %[1]s/made/three.txt
  - stat -c '%%U %%a' bireme-one.txt
`, p.Home))
	one := "one\ntwo\none\n" + alice + " 755\n"
	if r := p.Try("bireme", "apply", "-y", "-f", file); r.Code != 0 || len(r.Out) != 2*len(one) ||
		strings.Count(r.Out, alice+" 755\n") != 2 {
		t.Errorf("files: %v", r)
	}
	c.Eventually("they are gone", func() (bool, string) {
		one, err1 := filepath.Glob(filepath.Join(p.Home, "bireme-*"))
		two, err2 := filepath.Glob(filepath.Join(p.Home, "made"))
		return err1 == nil && err2 == nil && len(one)+len(two) == 0, fmt.Sprint(one, two)
	})
	mine := write(t, filepath.Join(p.Home, "bireme-one.txt"), "mine\n")
	if r := p.Try("bireme", "apply", "-y", "-f", file); r.Code != 0 || strings.Count(r.Out, "one\n") != 4 {
		t.Errorf("a file in the way, and so a folder of the run's own: %v", r)
	}
	write(t, file, "type: task\nname: files\nworking_dir: "+p.Home+"\nfiles: ['one.txt:bireme-one.txt']\ncommands: [ls]\n")
	if r := p.Try("bireme", "apply", "-y", "-f", file); r.Code == 0 {
		t.Errorf("a file in the way of the working directory: %v", r)
	}
	wants(t, "why", p.Run("bireme", "why", "files"), "files: "+p.Home+
		"/bireme-one.txt: there is something else of that name already")
	if got := read(t, mine); got != "mine\n" {
		t.Errorf("the user's own file is %q", got)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
}

func additions(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	first := write(t, filepath.Join(c.Work, "first.dstack.yml"), "type: task\nname: first\ncommands: [exit 1]\n")
	if r := p.Try("bireme", "apply", "-y", "-f", first); r.Code != 1 {
		t.Errorf("a run that fails: %v", r)
	}
	file := write(t, filepath.Join(c.Work, "array.dstack.yml"), `type: task
name: parts
array: 1-3%1
depends_on: afternotok:first
time: 0:10:00
commands:
  - echo "part $SLURM_ARRAY_TASK_ID"
`)
	p.Run("bireme", "apply", "-y", "-d", "-f", file)
	c.Eventually("all parts have run", func() (bool, string) {
		out := p.Run("sacct", "-X", "-n", "-P", "-o", "JobName,State,Timelimit", "--name", "parts")
		return strings.Count(out, "parts|COMPLETED|00:10:00") == 3, out
	})
	never := write(t, filepath.Join(c.Work, "never.dstack.yml"),
		"type: task\nname: never\nconstraint: nosuchfeature\ncommands: [a]\n")
	refused(t, p.Try("bireme", "apply", "-y", "-f", never), 2, "nosuchfeature")
}

// checkpoints: a signal reaches the commands before the limit, and a file says when state was saved.
func checkpoints(t *testing.T, c *cluster.Cluster) {
	p := c.As(alice)
	file := write(t, filepath.Join(c.Work, "check.dstack.yml"), `type: task
name: check
working_dir: ~/
time: 1m
checkpoint: {signal: USR1, grace: 45s, saved_file: state}
commands:
  - touch state
  - sh -c 'trap "echo saved; exit 0" USR1; while :; do sleep 0.1; done'
  - echo after
`)
	p.Run("bireme", "apply", "-y", "-d", "-f", file)
	c.Eventually("the saved file is noticed", func() (bool, string) {
		runs, err := c.Client(time.Second).Runs(t.Context(), "", "check")
		if err != nil || len(runs.Runs) == 0 || len(runs.Runs[0].Jobs) == 0 {
			return false, fmt.Sprint(err)
		}
		job, err := c.Client(time.Second).Job(t.Context(), fmt.Sprint(runs.Runs[0].Jobs[0]))
		if err != nil {
			return false, err.Error()
		}
		return job.Jobs[0].Checkpoint != 0, string(job.Jobs[0].State)
	})
	c.Eventually("it ends by the signal", func() (bool, string) {
		out := p.Run("bireme", "logs", "check")
		return strings.Contains(out, "saved\nafter\n"), out
	})
}
