//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/cluster"
)

// bench is a cluster with one node and jobs that leave marks.
type bench struct {
	*cluster.Cluster
	t   *testing.T
	dir string
}

func newBench(t *testing.T, opt cluster.Options) *bench {
	t.Helper()
	if opt.Nodes == 0 {
		opt.Nodes, opt.CPUs, opt.Memory = 1, 4, "4G"
	}
	b := &bench{Cluster: cluster.Start(t, opt), t: t}
	var err error
	if b.dir, err = folders(b.Cluster); err != nil {
		t.Fatal(err)
	}
	return b
}

// submit hands in an order and gives its job.
func (b *bench) submit(o *order, change ...func(*core.Spec)) string {
	b.t.Helper()
	o.nodes = max(1, o.nodes)
	s := o.submission(b.dir)
	for _, f := range change {
		f(&s.Spec)
	}
	done, err := b.Client(10*time.Second).Submit(b.t.Context(), s)
	if err != nil {
		b.t.Fatal(err)
	}
	o.id = done.ID
	return fmt.Sprint(done.ID)
}

// started waits for the mark of an attempt's start.
func (b *bench) started(o *order, attempt int) {
	b.t.Helper()
	b.WaitFile(filepath.Join(b.dir, "run", o.name), fmt.Sprintf("start %d.%d.batch", o.id, attempt))
}

// ended waits for the mark that the job's program has come to its end.
func (b *bench) ended(o *order) {
	b.t.Helper()
	b.WaitFile(filepath.Join(b.dir, "run", o.name), "end ")
}

// marks checks that a job ran as often as it should and never twice at once.
func (b *bench) marks(o *order, starts int) {
	b.t.Helper()
	text := strings.Join(lines(filepath.Join(b.dir, "run", o.name)), "\n")
	if n := strings.Count(text, "start "); n != starts {
		b.t.Errorf("%s ran %d times, want %d:\n%s", o.name, n, starts, text)
	}
	if twice := lines(filepath.Join(b.dir, "twice")); twice != nil {
		b.t.Errorf("ran twice at once: %v", twice)
	}
}

// held reports whether a process of the job lives: it holds the lock.
func (b *bench) held(o *order) bool {
	b.t.Helper()
	f, err := os.Open(filepath.Join(b.dir, "lock", o.name))
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
		b.t.Fatal(err)
	}
	return err != nil
}

func (b *bench) cancel(id string) {
	b.t.Helper()
	if _, err := b.Client(10*time.Second).Cancel(b.t.Context(), &client.Cancel{IDs: []string{id}}); err != nil {
		b.t.Fatal(err)
	}
	b.WaitEnd(id)
}

func wantEnd(t *testing.T, j *client.Job, state core.JobState, exit core.Exit, attempt int32) {
	t.Helper()
	if j.State != state || j.Exit != exit || j.Attempt != attempt {
		t.Errorf("job %d ended %v %d:%d in attempt %d (%q), want %v %d:%d in attempt %d", j.ID, j.State, j.Exit.Code,
			j.Exit.Signal, j.Attempt, j.Message,
			state, exit.Code, exit.Signal, attempt)
	}
}

// A server that is away kills nothing, and what ended meanwhile is known when it is back.
func TestServerAway(t *testing.T) {
	t.Parallel()
	b := newBench(t, cluster.Options{})
	short := &order{name: "short", sleep: 300 * time.Millisecond, code: 5}
	long := &order{name: "long", sleep: 4 * time.Second}
	shortID, longID := b.submit(short), b.submit(long)
	b.started(short, 1)
	b.started(long, 1)
	b.KillServer()
	b.ended(short)
	if err := b.Up(); err != nil {
		t.Fatal(err)
	}
	wantEnd(t, b.WaitEnd(shortID), core.Failed, core.Exit{Code: 5}, 1)
	if j := b.Job(longID); j.State != core.Running && !b.held(long) {
		t.Errorf("the long job is %v", j.State)
	}
	wantEnd(t, b.WaitEnd(longID), core.Completed, core.Exit{}, 1)
	b.marks(short, 1)
	b.marks(long, 1)
}

// Jobs outlive their agent, however often it dies, and are launched once.
func TestAgentKilledOften(t *testing.T) {
	t.Parallel()
	b := newBench(t, cluster.Options{})
	node := b.Nodes()[0]
	o := &order{name: "steady", sleep: 3 * time.Second, code: 4}
	id := b.submit(o)
	b.started(o, 1)
	for range 3 {
		b.Kill("agent", func() int { return b.Agent(node) })
	}
	wantEnd(t, b.WaitEnd(id), core.Failed, core.Exit{Code: 4}, 1)
	b.marks(o, 1)
}

// A keeper that is killed takes its jobs along: they end NODE_FAIL with that reason, or run again.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	b := newBench(t, cluster.Options{})
	node := b.Nodes()[0]
	stays := &order{name: "stays", sleep: time.Minute}
	again := &order{name: "again", sleep: time.Minute, requeue: true}
	staysID, againID := b.submit(stays), b.submit(again)
	b.started(stays, 1)
	b.started(again, 1)
	b.Kill("keeper", func() int { return b.Keeper(node) })
	j := b.WaitEnd(staysID)
	if j.State != core.NodeFail || !strings.Contains(j.Message, "keeper") {
		t.Errorf("the job that may not run again ended %v, %q; want NODE_FAIL because of the keeper", j.State, j.Message)
	}
	if b.held(stays) {
		t.Error("processes of the job outlived its end")
	}
	b.started(again, 2)
	if j := b.Job(againID); j.State != core.Running || j.Attempt != 2 {
		t.Errorf("the job that may run again is %v in attempt %d", j.State, j.Attempt)
	}
	b.cancel(againID)
	b.marks(stays, 1)
	b.marks(again, 2)
	b.WaitClean()
}

// An agent that does not answer makes its node silent and nothing else: the job continues and its exit is told later.
func TestAgentSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t, cluster.Options{Set: []string{"timers.silent_after=400ms"}})
	node := b.Nodes()[0]
	o := &order{name: "quiet", sleep: 1500 * time.Millisecond, code: 7, requeue: true}
	id := b.submit(o)
	b.started(o, 1)
	agent := b.Agent(node)
	b.Signal(agent, syscall.SIGSTOP)
	defer b.Signal(agent, syscall.SIGCONT)
	b.WaitNode(node, "silent", func(n *client.Node) bool { return n.Flags.Has(core.NodeSilent) })
	b.ended(o)
	if j := b.Job(id); j.State != core.Running || j.Attempt != 1 {
		t.Errorf("the job of a silent node is %v in attempt %d: %q", j.State, j.Attempt, j.Message)
	}
	b.Signal(agent, syscall.SIGCONT)
	wantEnd(t, b.WaitEnd(id), core.Failed, core.Exit{Code: 7}, 1)
	b.WaitNode(node, "heard again", func(n *client.Node) bool { return !n.Flags.Has(core.NodeSilent) })
	b.marks(o, 1)
}
