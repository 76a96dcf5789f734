package agent

import (
	"bytes"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// BenchmarkJob passes a plain batch job through: launch, end, acknowledgement. It counts the fakes at both ends, too.
func BenchmarkJob(b *testing.B) {
	s, dir := newFakeServer(b), shortDir(b)
	k := newFakeKeeper(b, dir)
	startAgent(b, s, k, dir)
	keeper := take(b, k.conns, "the agent at the keeper")
	server := s.session(wire.Welcome{})
	script, env := bytes.Repeat([]byte("x"), 2<<10), bytes.Repeat([]byte("A=0123456789abc\x00"), 6<<10/16)
	go func() {
		for f := range keeper.frames {
			if f.Type != wire.TypeLaunch {
				continue
			}
			l, err := wire.DecodeLaunch(f)
			if err != nil || keeper.Send(wire.TypeStarted, wire.Started{Key: l.Key, PID: 1}) != nil ||
				keeper.Send(wire.TypeExited, wire.Exited{Key: l.Key, Started: true, JobDone: true}) != nil {
				return
			}
		}
	}()
	b.ReportAllocs()
	const ahead = 64
	at := int64(0)
	for b.Loop() {
		at++
		if err := server.SendLaunch(&wire.Launch{Key: key(at), Script: script, Env: env, EndsJob: true}); err != nil {
			b.Fatal(err)
		}
		if at > ahead {
			var x wire.Exited
			server.want(wire.TypeExited, &x)
			server.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{x.Key}})
		}
	}
}
