package srun

import (
	"io"
	"net"
	"sync"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/direct"
)

// A server that is not told of the last word of a node that srun hears directly takes srun for lost, and cancels its
// job.
func TestDirectEndIsToldBeforeLeaving(t *testing.T) {
	t.Parallel()
	for range 30 { // srun leaves at once: what it tells late is lost only sometimes
		var news []string
		over := make(chan struct{})
		var p *play
		p = newPlay(t, 7, one(), func(hub *wire.Conn, _ func() string) {
			defer close(over)
			raw, err := direct.Dial(t.Context(), (*wire.Direct)(p.asked.Direct), "n001")
			if err != nil {
				t.Error(err)
				return
			}
			node := wire.NewConn(raw)
			defer node.Close()
			exit(node, "n001", 0, 0, 0)
			last(node, "n001")
			for {
				f, err := hub.Next()
				if err != nil {
					return
				}
				var n wire.DirectNews
				if f.Type == wire.TypeDirectNews && f.Decode(&n) == nil {
					news = append(news, n.State)
				}
			}
		})
		p.direct = true
		got := p.Run(t, "srun", Run, []string{"true"})
		<-over
		if got.Code != 0 || len(news) != 2 || news[0] != "direct" || news[1] != "done" {
			t.Fatalf("srun: exit %d, %s; it told of the node: %v, want direct and done", got.Code, got.Err, news)
		}
	}
}

// The server hangs up on a part of a step that is over, while others run on. It is not asked for again, be it there or
// not, and what is for all nodes still waits for those of a part that have not come.
func TestAPartThatIsOverDoesNotEndTheOthers(t *testing.T) {
	t.Parallel()
	var all links
	var hubs []*wire.Conn
	for i, nodes := range [][]core.NodeName{{"n001"}, {"n002", "n003", "n004"}} {
		ours, theirs := net.Pipe()
		hubs = append(hubs, wire.NewConn(theirs))
		all = append(all, newLink(i, wire.NewConn(ours), nodes, nil, func() (io.ReadWriteCloser, error) {
			return nil, core.Errorf(core.Unavailable, "the server is away")
		}))
	}
	frames, broken := all.start()
	defer all.close()
	comes := func(part int, node core.NodeName, kind wire.Type) {
		t.Helper()
		go hubs[part].Send(kind, wire.TaskExit{Node: node})
		select {
		case f := <-frames:
			if f.part != part || f.Type != kind {
				t.Fatalf("frame %d of part %d", f.Type, f.part)
			}
		case err := <-broken:
			t.Fatalf("broken: %v", err)
		}
		if kind == wire.TypeStepExit {
			all[part].done(node)
		}
	}
	comes(0, "n001", wire.TypeStepExit)
	hubs[0].Close()
	comes(1, "n002", wire.TypeStepExit)
	comes(1, "n003", wire.TypeTaskStart)
	_ = all.Send(wire.TypeStepSignal, wire.StepSignal{Signal: 2})
	all[1].mu.Lock()
	if n := len(all[1].queue); n != 1 {
		t.Errorf("%d frames wait for n004, want 1", n)
	}
	all[1].mu.Unlock()
	got := make(chan wire.Type, 1)
	go func() { // ends with the frame, or with the link
		f, _ := hubs[1].Next()
		got <- f.Type
	}()
	comes(1, "n004", wire.TypeTaskStart)
	if f := <-got; f != wire.TypeStepSignal {
		t.Errorf("the other part got frame %d", f)
	}
	comes(1, "n003", wire.TypeStepExit)
	comes(1, "n004", wire.TypeStepExit)
}

// What is typed before the nodes are there comes before what is typed after, also when that is typed while the first is
// on its way.
func TestWhatWaitedComesFirst(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	hub := wire.NewConn(theirs)
	l := newLink(0, wire.NewConn(ours), []core.NodeName{"n001"}, nil, nil)
	const waited, typed = 20, 20
	for i := range waited {
		_ = l.Send(wire.TypeInput, wire.IOHeader{Rank: int32(i)})
	}
	var senders sync.WaitGroup
	senders.Go(func() { l.arrived("n001") })
	for i := range waited + typed {
		f, err := hub.Next()
		var h wire.IOHeader
		if err != nil || f.Decode(&h) != nil || h.Rank != int32(i) {
			t.Fatalf("frame %d of %d came in the place of %d: %v", h.Rank, waited+typed, i, err)
		}
		if i == 0 { // the others are on their way
			senders.Go(func() {
				for k := range typed {
					_ = l.Send(wire.TypeInput, wire.IOHeader{Rank: int32(waited + k)})
				}
			})
		}
	}
	senders.Wait()
}
