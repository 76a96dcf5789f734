package stream

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// join opens one end of a step's streams on a pipe and gives the other end of that.
func join(t *testing.T, open func(accept func() (net.Conn, error)) error) net.Conn {
	t.Helper()
	far, near := net.Pipe()
	in, out := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(out)
		_ = open(func() (net.Conn, error) { close(in); return near, nil }) // how a stream ends is not looked at
	}()
	t.Cleanup(func() { far.Close(); <-out })
	<-in
	return far
}

// An srun that reads nothing holds up those who watch its step, not the engine that tells of the step's end.
func TestStuckSrunHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := New(Patience{})
		st := &core.Step{Job: 7, Attempt: 1, Nodes: []core.NodeName{"n1", "n2"}}
		x.Expect("k", st, "ann", func() {})
		ann := core.Identity{User: "ann"}
		join(t, func(accept func() (net.Conn, error)) error { return x.Srun("k", ann, false, accept) })
		for _, n := range st.Nodes {
			node := wire.NewConn(join(t, func(accept func() (net.Conn, error)) error { return x.Step("k", n, accept) }))
			go func() { // until the test closes it
				for node.Send(wire.TypeIO, wire.IOHeader{FD: 1}, make([]byte, 1<<20)) == nil {
				}
			}()
		}
		synctest.Wait() // all is full
		join(t, func(accept func() (net.Conn, error)) error { return x.Watch(7, 0, ann, accept) })
		synctest.Wait() // srun is being told of the watcher
		x.Ended(st)
		x.Close()
	})
}

// The streams of a job's first attempt end after those of its second have begun.
func TestAttemptsAreKeptApart(t *testing.T) {
	t.Parallel()
	x := New(Patience{Meet: time.Hour, Trail: time.Nanosecond})
	old := &core.Step{Job: 7, Attempt: 1, Nodes: []core.NodeName{"n1"}}
	now := &core.Step{Job: 7, Attempt: 2, Nodes: []core.NodeName{"n1"}}
	ann := core.Identity{User: "ann"}
	x.Expect("old", old, "ann", func() {})
	first, err := x.find("old", core.Gone)
	if err != nil {
		t.Fatal(err)
	}
	x.ends.Done()
	x.Expect("now", now, "ann", func() {})
	srun := wire.NewConn(join(t, func(accept func() (net.Conn, error)) error { return x.Srun("now", ann, false, accept) }))
	// The trail is short here: without this the step's end could be told before the session has srun's connection.
	if err := srun.Send(wire.TypeDirectNews, wire.DirectNews{}); err != nil {
		t.Fatal(err)
	}
	first.end(nil, false)
	old.Message, now.Message = "the first", "the second"
	x.Ended(old)
	x.Ended(now)
	f, err := srun.Next()
	var exit wire.TaskExit
	if err == nil {
		err = f.Decode(&exit)
	}
	if err != nil || exit.Message != "the second" {
		t.Errorf("srun heard %+v, %v", exit, err)
	}
	x.Close()
}

// Who comes to watch before the streams are there waits for them, as long as they like to.
func TestWatchersWaitForSrun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		x := New(Patience{})
		ctx, cancel := context.WithCancel(t.Context())
		there := make(chan bool, 2)
		for _, c := range []context.Context{ctx, t.Context()} {
			go func() { x.Await(c, 7, 0); there <- c.Err() == nil }()
		}
		cancel()
		if <-there {
			t.Error("one who left was told that the streams are there")
		}
		x.Expect("other", &core.Step{Job: 8, Nodes: []core.NodeName{"n1"}}, "ann", func() {})
		synctest.Wait()
		if len(there) > 0 {
			t.Error("the streams of another job were taken for these")
		}
		x.Expect("k", &core.Step{Job: 7, Nodes: []core.NodeName{"n1"}}, "ann", func() {})
		if !<-there {
			t.Error("they did not come")
		}
		x.Close()
	})
}

// An srun whose connection broke without the server's seeing it takes its place again; the step continues.
func TestSrunTakesItsPlaceAgain(t *testing.T) {
	t.Parallel()
	x := New(Patience{Meet: time.Hour, Trail: time.Nanosecond})
	st := &core.Step{Job: 7, Attempt: 1, Nodes: []core.NodeName{"n1"}}
	ann := core.Identity{User: "ann"}
	x.Expect("k", st, "ann", func() { t.Error("the step lost its srun") })
	first := wire.NewConn(join(t, func(accept func() (net.Conn, error)) error { return x.Srun("k", ann, false, accept) }))
	if err := x.Srun("k", ann, false, nil); core.CodeOf(err) != core.Conflict {
		t.Errorf("another srun: %v", err)
	}
	second := wire.NewConn(join(t, func(accept func() (net.Conn, error)) error { return x.Srun("k", ann, true, accept) }))
	if _, err := first.Next(); err == nil {
		t.Error("the broken connection is still read")
	}
	node := wire.NewConn(join(t, func(accept func() (net.Conn, error)) error { return x.Step("k", "n1", accept) }))
	go func() { _ = node.Send(wire.TypeStepExit, wire.TaskExit{Node: "n1"}) }() // the pipe waits for its reader
	if f, err := second.Next(); err != nil || f.Type != wire.TypeStepExit {
		t.Errorf("srun heard %v, %v", f.Type, err)
	}
	x.Close()
}

// An srun that comes again while the server is still taking its first connection waits for that one, and takes its
// place or the first, as the case may be.
func TestSrunComesAgainEarly(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"taken": nil, "broken": net.ErrClosed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				x := New(Patience{})
				ann := core.Identity{User: "ann"}
				x.Expect("k", &core.Step{Job: 7, Nodes: []core.NodeName{"n1"}}, "ann", func() {})
				hold, ended := make(chan struct{}), make(chan error, 1)
				far, near := net.Pipe()
				defer far.Close()
				go func() {
					ended <- x.Srun("k", ann, false, func() (net.Conn, error) { <-hold; return near, fault })
				}()
				synctest.Wait() // it is being taken
				go func() {
					synctest.Wait() // the other one waits
					close(hold)
				}()
				join(t, func(accept func() (net.Conn, error)) error { return x.Srun("k", ann, true, accept) })
				if err := <-ended; !errors.Is(err, fault) {
					t.Errorf("the first ended with %v", err)
				}
				x.Close()
			})
		})
	}
}
