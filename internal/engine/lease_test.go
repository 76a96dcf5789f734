package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
)

// TestLeaderStepsDownBeforeItsLeaseEnds: one that does not reach the store any more, whose renewal and commit hang, has
// stepped down before the other can take the lead.
func TestLeaderStepsDownBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		first := start(t, f, Config{Holder: "a", Lease: 8 * time.Second})
		first.people(1)
		second := start(t, f, Config{Holder: "b", Lease: 8 * time.Second})
		time.Sleep(time.Minute)
		if !first.HoldsLease() || second.HoldsLease() {
			t.Fatalf("the first holds the lease: %v, the second: %v", first.HoldsLease(), second.HoldsLease())
		}
		var expires time.Time
		f.set(func(f *fakestore) { f.cut, f.gate, expires = "a", make(chan struct{}), f.expires })
		answered := make(chan error, 1)
		go func() {
			_, err := Do(context.Background(), first.Engine, submit(0, "k"))
			answered <- err
		}()
		err := <-first.done
		if !errors.Is(err, ErrLeadershipLost) || first.HoldsLease() {
			t.Errorf("the first ended with %v, and holds the lease: %v", err, first.HoldsLease())
		}
		if left := time.Until(expires); left <= 0 {
			t.Errorf("it ended %v after its lease", -left)
		}
		if err := <-answered; core.CodeOf(err) != core.Unavailable {
			t.Errorf("a caller whose write hung got %v", err)
		}
		if second.HoldsLease() {
			t.Error("the second holds the lease before the first one's has ended")
		}
		f.set(func(f *fakestore) { f.gate = nil })
		<-second.Leading()
		if !second.HoldsLease() || time.Now().Before(expires) {
			t.Errorf("the second leads %v before the end of the lease", time.Until(expires))
		}
		must(second, submit(0, "k"))
	})
}

// TestLeaseIsRenewedWhileACommitHangs: a slow write does not end leadership.
func TestLeaseIsRenewedWhileACommitHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{Holder: "a", Lease: 2 * time.Second})
		e.people(1)
		f.set(func(f *fakestore) { f.delay = 10 * time.Second })
		must(e, submit(0, "k"))
		if !e.HoldsLease() {
			t.Error("the lease is lost")
		}
	})
}
