package agent

import (
	"errors"
	"log/slog"
	"net"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// handled waits until the agent has taken all that the keeper has sent, without a word to the server: it reads one
// connection to its end before it makes the next. The keeper then holds what h says.
func (k *fakeKeeper) handled(keeper *peer, h wire.KeeperHello) *peer {
	k.t.Helper()
	k.mu.Lock()
	k.hello = h
	k.mu.Unlock()
	if err := keeper.Finish(patienceOfTests); err != nil {
		k.t.Fatal(err)
	}
	return take(k.t, k.conns, "the agent at the keeper again")
}

// answering has the keeper answer every question for output. The peer returned has all other frames.
func answering(keeper *peer, output string) *peer {
	rest := &peer{t: keeper.t, Conn: keeper.Conn, frames: make(chan wire.Frame, cap(keeper.frames))}
	go func() { // ends with the connection
		defer close(rest.frames)
		for f := range keeper.frames {
			var q wire.ReadLog
			if f.Type != wire.TypeReadLog || f.Decode(&q) != nil {
				rest.frames <- f
				continue
			}
			l := wire.Log{Ref: q.Ref, Key: q.Key, Offset: q.Offset, Size: int64(len(output)), Ended: true}
			_ = keeper.Send(wire.TypeLog, l, []byte(output[q.Offset:])) // else the agent is gone
		}
	}()
	return rest
}

// notForgotten fails if the keeper was told to forget an end before it is asked for usage, which the server wants now.
func notForgotten(server, keeper *peer) {
	keeper.t.Helper()
	server.send(wire.TypeStat, wire.Stat{Ref: 9, Job: 1, Attempt: 1})
	for {
		switch f := take(keeper.t, keeper.frames, "the question for usage"); f.Type {
		case wire.TypeAckExit:
			keeper.t.Fatal("the keeper was told to forget output that the server does not have")
		case wire.TypeStat:
			var q wire.Stat
			if err := f.Decode(&q); err != nil {
				keeper.t.Fatal(err)
			}
			if q.Ref == 9 { // the agent asks by itself, too
				return
			}
		}
	}
}

// TestOutputIsKeptUntilTheServerHasIt: whatever becomes of the connection on which output was sent, or would have been,
// the keeper keeps it until the server has answered for it.
func TestOutputIsKeptUntilTheServerHasIt(t *testing.T) {
	t.Parallel()
	const output = "line 1\nend\n"
	x := wire.Exited{Key: key(1), ExitCode: 3, LogSize: int64(len(output))}
	running := wire.KeeperHello{Instance: "one", Running: []wire.Running{{Key: key(1)}}}
	ended := wire.KeeperHello{Instance: "one", Ended: []wire.Exited{x}}
	for _, tc := range []struct {
		name string
		// first is what happens on the first connections. The keeper's, with the end told, is returned.
		first func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer
		logs  []wire.LogAck // told by the server that stays
	}{
		{"ended between hello and welcome", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			server := take(t, s.sessions, "an agent")
			keeper.send(wire.TypeExited, x, []byte(output))
			keeper = answering(k.handled(keeper, ended), output)
			server.Close()
			for f := range server.frames {
				t.Errorf("a frame of type %d came before the welcome", f.Type)
			}
			return keeper
		}, nil},
		{"and that twice", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			take(t, s.sessions, "an agent").Close()
			server := take(t, s.sessions, "the agent again")
			keeper.send(wire.TypeExited, x, []byte(output))
			keeper = answering(k.handled(keeper, ended), output)
			server.Close()
			return keeper
		}, nil},
		{"and then streamed", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			server := take(t, s.sessions, "an agent")
			keeper.send(wire.TypeExited, x, []byte(output))
			keeper = answering(k.handled(keeper, ended), output)
			server.Close()
			return keeper
		}, []wire.LogAck{{Key: key(1), Offset: 7}}},
		{"sent with the end", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			server := s.session(wire.Welcome{})
			notForgotten(server, keeper) // it has taken the welcome
			keeper.send(wire.TypeExited, x, []byte(output))
			var got wire.Exited
			if f := server.want(wire.TypeExited, &got); string(f.Payload) != output {
				t.Errorf("the end came with %q", f.Payload)
			}
			server.Close()
			return keeper
		}, nil},
		{"sent before the end", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			server := s.session(wire.Welcome{})
			notForgotten(server, keeper) // it has taken the welcome
			keeper.send(wire.TypeExited, x)
			var got wire.Exited
			server.want(wire.TypeExited, &got)
			server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
			notForgotten(server, keeper)
			server.Close()
			return keeper
		}, nil},
		{"sent after the hello", func(t *testing.T, s *fakeServer, k *fakeKeeper, keeper *peer) *peer {
			keeper.send(wire.TypeExited, x, []byte(output))
			keeper = answering(k.handled(keeper, ended), output)
			s.session(wire.Welcome{}).Close() // its hello was made before the end, or after
			server := s.session(wire.Welcome{})
			var c wire.LogChunk
			server.want(wire.TypeLogChunk, &c)
			server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
			notForgotten(server, keeper)
			server.Close()
			return keeper
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, dir := newFakeServer(t), shortDir(t)
			k := newFakeKeeper(t, dir)
			k.hello = running
			startAgent(t, s, k, dir)
			keeper := answering(take(t, k.conns, "the agent at the keeper"), output)
			keeper = tc.first(t, s, k, keeper)

			server := s.session(wire.Welcome{Logs: tc.logs})
			if h := server.hello; len(h.Running) != 0 || len(h.Ended) != 1 || h.Ended[0].ExitCode != 3 {
				t.Fatalf("the hello tells %+v running, %+v ended", h.Running, h.Ended)
			}
			server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
			var c wire.LogChunk
			f := server.want(wire.TypeLogChunk, &c)
			from := 0
			if tc.logs != nil {
				from = int(tc.logs[0].Offset)
			}
			if int(c.Offset) != from || string(f.Payload) != output[from:] || !c.End {
				t.Errorf("the output is sent as %+v %q", c, f.Payload)
			}
			notForgotten(server, keeper)
			server.send(wire.TypeLogAck, wire.LogAck{Key: key(1), Offset: int64(len(output))})
			var ack wire.AckExit
			if keeper.want(wire.TypeAckExit, &ack); len(ack.Keys) != 1 || ack.Keys[0] != key(1) {
				t.Errorf("forgotten is %+v", ack)
			}
		})
	}
}

// TestEndAfterTheHelloIsTold: an end that comes between hello and welcome is told after the welcome, with its output.
func TestEndAfterTheHelloIsTold(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	k.hello.Running = []wire.Running{{Key: key(1)}}
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := take(t, s.sessions, "an agent")
	x := wire.Exited{Key: key(1), LogSize: 4}
	keeper.send(wire.TypeExited, x, []byte("end\n"))
	keeper = answering(k.handled(keeper, wire.KeeperHello{Instance: "one", Ended: []wire.Exited{x}}), "end\n")
	server.send(wire.TypeWelcome, wire.Welcome{Protocol: wire.AgentProtocol})
	told := map[wire.Type]wire.Frame{} // in either order: the keeper may have been away when its output was wanted
	for len(told) < 2 {
		if f := take(t, server.frames, "end and output"); f.Type == wire.TypeLogChunk || f.Type == wire.TypeExited {
			told[f.Type] = f
		}
	}
	if got := told[wire.TypeLogChunk].Payload; string(got) != "end\n" {
		t.Errorf("the output is %q", got)
	}
	server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{key(1)}})
	notForgotten(server, keeper)
	server.send(wire.TypeLogAck, wire.LogAck{Key: key(1), Offset: 4})
	var ack wire.AckExit
	keeper.want(wire.TypeAckExit, &ack)
}

// TestCallOnABrokenStream: a question that finds the keeper's stream broken is one to ask the next keeper.
func TestCallOnABrokenStream(t *testing.T) {
	t.Parallel()
	l := newLedger(slog.New(slog.DiscardHandler))
	ours, theirs := net.Pipe()
	theirs.Close()
	c := wire.NewConn(ours)
	defer c.Close()
	l.connected(c, wire.KeeperHello{})
	_, err := l.call(t.Context().Done(), wire.TypeReadLog, func(ref uint64) any {
		return wire.ReadLog{Ref: ref, Key: key(1), Max: 10}
	})
	if !errors.Is(err, errNoKeeper) {
		t.Errorf("the call ended as %v", err)
	}
}
