package hub

import (
	"sync/atomic"
	"testing"
	"time"

	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/wire"
)

// TestHeartbeatsAreAnsweredUnderTheLease: a server whose lease has ended by its own clock answers no heartbeat and
// welcomes no node, whether or not it has stepped down yet.
func TestHeartbeatsAreAnsweredUnderTheLease(t *testing.T) {
	t.Parallel()
	var clock atomic.Int64
	l := newLab(t, func(c *engine.Config) {
		c.Lease, c.Clock = time.Hour, func() time.Duration { return time.Duration(clock.Load()) }
	})
	a := l.dial().welcomed()
	a.exchange()
	clock.Store(int64(time.Hour))
	if err := a.w.Send(wire.TypeHeartbeat, wire.Heartbeat{}); err != nil {
		t.Fatal(err)
	}
	// An answer to the heartbeat would come before this one's.
	if err := a.w.Send(wire.TypeLogChunk, wire.LogChunk{Key: wire.Key{Job: 1, Step: "0"}}); err != nil {
		t.Fatal(err)
	}
	a.want(wire.TypeLogAck)
	b := l.dial()
	if f, err := b.w.Next(); err == nil {
		t.Errorf("a node that came got a frame of type %d", f.Type)
	}
}
