package engine

import (
	"context"
	"errors"
	"strings"
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

// TestServerWithAWrongClockDoesNotLead: it follows until the clock is right, and says why.
func TestServerWithAWrongClockDoesNotLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		f.ahead = time.Hour
		e := start(t, f, Config{Holder: "a", Lease: 2 * time.Second})
		<-e.Copy.Following()
		_, err := Do(t.Context(), e.Engine, submit(0, "k"))
		if core.CodeOf(err) != core.Unavailable || !strings.Contains(err.Error(), "clock is -1h0m0s off") {
			t.Errorf("it answers %v", err)
		}
		f.set(func(f *fakestore) { f.ahead = time.Minute })
		<-e.Leading()
	})
}

// TestFollowerCopies: an engine that follows has the state of the one that leads, and waits for what somebody wants to
// see.
func TestFollowerCopies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		first := start(t, f, Config{Holder: "a", Lease: 2 * time.Second})
		first.people(1)
		second := start(t, f, Config{Holder: "b", Lease: 2 * time.Second})
		<-second.Copy.Following()
		told := make(chan *Published, 100)
		defer second.Subscribe(func(p *Published) { told <- p })()
		id := idOf(t, must(first, submit(0, "k")))
		if err := second.Copy.Await(t.Context(), first.Snapshot().Seq()); err != nil {
			t.Fatal(err)
		}
		if _, ok := second.Snapshot().Job(id); !ok || second.HoldsLease() || second.Copy.LeaderHolder() != "a" {
			t.Errorf("the copy has the job: %v; it follows %q", ok, second.Copy.LeaderHolder())
		}
		if p := <-told; !p.Reloaded {
			t.Error("subscribers were not told")
		}
		time.Sleep(5 * time.Second)
		if b := second.Copy.Behind(); b > 2*followEvery {
			t.Errorf("the copy is %v old", b)
		}
		loads := func() int { _, _, n := f.count(); return n }
		before := loads()
		time.Sleep(time.Minute)
		if n := loads() - before; n > 0 {
			t.Errorf("a state that did not move was loaded %d times", n)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := second.Copy.Await(ctx, first.Snapshot().Seq()+1); core.CodeOf(err) != core.Unavailable {
			t.Errorf("it has what is not there: %v", err)
		}
		// Asked to step down, the first lets the second lead.
		if err := first.StepDown(); err != nil {
			t.Fatal(err)
		}
		if err := <-first.done; !SteppedDown(err) || !errors.Is(err, ErrLeadershipLost) {
			t.Errorf("the first ended with %v", err)
		}
		<-second.Leading()
		must(second, submit(0, "k2"))
	})
}
