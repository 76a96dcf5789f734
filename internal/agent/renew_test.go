package agent

import (
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// TestKeeperGetsItsNewProgram: a keeper of another program is asked to take the agent's once nothing runs, again when
// it said that it was busy, and no more when it came back as it was.
func TestKeeperGetsItsNewProgram(t *testing.T) {
	t.Parallel()
	s, dir := newFakeServer(t), shortDir(t)
	k := newFakeKeeper(t, dir)
	k.spec.Program = filepath.Join(dir, "newer")
	if err := os.WriteFile(k.spec.Program, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	k.hello.PID, k.hello.Running = os.Getpid(), []wire.Running{{Key: key(5), PID: 9}}
	startAgent(t, s, k, dir)
	keeper := take(t, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	launch := func(p *peer, job int64) {
		t.Helper()
		if err := server.SendLaunch(&wire.Launch{Key: key(job)}); err != nil {
			t.Fatal(err)
		}
		for {
			f := take(t, p.frames, "a launch")
			if f.Type == wire.TypeUpgrade {
				t.Fatal("the keeper is asked to take another program while something runs, or once too often")
			}
			if f.Type == wire.TypeLaunch {
				break
			}
		}
		p.send(wire.TypeStarted, wire.Started{Key: key(job)})
	}
	launch(keeper, 6)
	keeper.send(wire.TypeExited, wire.Exited{Key: key(6)})
	launch(keeper, 7)
	keeper.send(wire.TypeExited, wire.Exited{Key: key(5)})
	keeper.send(wire.TypeExited, wire.Exited{Key: key(7)})
	var up wire.Upgrade
	if keeper.want(wire.TypeUpgrade, &up); up.Path != k.spec.Program {
		t.Errorf("asked to become %q", up.Path)
	}
	keeper.send(wire.TypeReply, wire.Reply{Ref: up.Ref, Code: string(core.Conflict), Error: "not now"})
	keeper.send(wire.TypeJobDone, wire.JobDone{})
	keeper.want(wire.TypeUpgrade, &up)
	k.mu.Lock()
	k.hello.Running = nil
	k.mu.Unlock()
	keeper.Close() // as it is when it executes the other program
	again := take(t, k.conns, "the agent at the keeper again")
	launch(again, 8)
}
