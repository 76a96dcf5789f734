package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/store"
)

// running is an engine in a test, stopped at its end.
type running struct {
	*Engine
	t      testing.TB
	cancel context.CancelFunc
	done   chan error
}

func start(t testing.TB, st store.Store, cfg Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &running{
		Engine: New(st, cfg, slog.New(slog.NewTextHandler(io.Discard, nil))), t: t, cancel: cancel,
		done: make(chan error, 1),
	}
	go func() { e.done <- e.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-e.stopped })
	return e
}

// stop ends the engine and returns what Run said.
func (e *running) stop() error {
	e.cancel()
	return <-e.done
}

func must[R any](e *running, in state.Command[R]) R {
	e.t.Helper()
	reply, err := Do(e.t.Context(), e.Engine, in)
	if err != nil {
		e.t.Fatalf("%T: %v", in, err)
	}
	return reply
}

// people makes the users tests act as, and nodes for their jobs.
func (e *running) people(nodes int) {
	e.t.Helper()
	<-e.Leading()
	for i := range 8 {
		must(e, &state.EnsureUser{UID: uint32(1000 + i), UnixName: fmt.Sprintf("u%d", i)})
	}
	for i := range nodes {
		n := coretest.Node(core.NodeName(fmt.Sprintf("n%d", i+1))).Build()
		must(e, &state.Register{Node: n.Name, Hardware: n.Hardware, Host: n.Host, Roles: n.Roles})
	}
}

// submit is a submission by user number u.
func submit(u int, key string, set ...func(*core.Spec)) *state.Submit {
	name := core.UserName(fmt.Sprintf("u%d", u))
	b := coretest.Job().User(name).Set(func(s *core.Spec) { s.UID, s.Hold = uint32(1000+u), true })
	for _, f := range set {
		b.Set(f)
	}
	return &state.Submit{By: core.Identity{User: name, UID: uint32(1000 + u)}, Spec: b.Spec(), Key: key}
}

func free(s *core.Spec) { s.Hold = false }

func idOf(t testing.TB, reply *state.Submitted) core.JobID {
	t.Helper()
	if reply == nil {
		t.Fatal("a submission has no reply")
	}
	return reply.ID
}

func TestAnswersAreDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		id := idOf(t, must(e, submit(0, "k")))
		if f.job(id) == nil {
			t.Fatalf("job %d was acknowledged and is not on disk", id)
		}
		if j, ok := e.Snapshot().Job(id); !ok || j.Spec.User != "u0" {
			t.Fatalf("job %d was acknowledged and is not in the snapshot", id)
		}
		if _, err := Do(t.Context(), e.Engine,
			submit(0, "", func(s *core.Spec) {
				s.Partition = core.ListPartitions("nosuch")
			})); core.ReasonOf(err) != "invalid_partition" {
			t.Fatalf("a bad submission got %v", err)
		}
		if err := e.stop(); err != nil {
			t.Fatalf("Run: %v", err)
		}
		if _, err := Do(t.Context(), e.Engine, submit(0, "l")); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("a stopped engine said %v", err)
		}
	})
}

func TestUnknownFate(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"written": true, "lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakestore()
				e := start(t, f, Config{})
				e.people(1)
				var seen []*Published
				defer e.Subscribe(func(p *Published) { seen = append(seen, p) })()
				f.set(func(f *fakestore) { f.fate = failOnce(f.commits+1, written) })
				if _, err := Do(t.Context(), e.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
					t.Fatalf("a commit of unknown fate was answered with %v", err)
				}
				synctest.Wait() // what comes before the state is loaded again is answered alike
				reply := must(e, submit(0, "k"))
				if reply.Duplicate != written {
					t.Fatalf("sent again under its key: %+v; the first one was written: %t", reply, written)
				}
				if j := f.job(reply.ID); j == nil {
					t.Fatalf("job %d is not on disk", reply.ID)
				}
				if jobs, _, _ := f.count(); jobs != 1 {
					t.Fatalf("%d jobs were made", jobs)
				}
				synctest.Wait()
				if e.stop(); len(seen) == 0 || !seen[0].Reloaded {
					t.Fatalf("subscribers were not told that the state was loaded anew: %+v", seen)
				}
			})
		})
	}
}

// failOnce lets commit number n fail, written or not.
func failOnce(n int, written bool) func(int) (bool, error) {
	return func(k int) (bool, error) {
		if k == n {
			return written, errAway
		}
		return true, nil
	}
}

func TestNothingAcknowledgedIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{Probe: time.Millisecond})
		e.people(4)
		dice := rand.New(rand.NewPCG(7, 7))
		f.set(func(f *fakestore) {
			f.delay = time.Millisecond
			f.fate = func(int) (bool, error) {
				if dice.IntN(4) == 0 {
					return dice.IntN(2) == 0, errAway
				}
				return true, nil
			}
		})
		var mu sync.Mutex
		acked := map[string]core.JobID{}
		var wg sync.WaitGroup
		for c := range 20 {
			wg.Go(func() {
				for n := range 10 {
					key := fmt.Sprintf("%d-%d", c, n)
					for {
						reply, err := Do(t.Context(), e.Engine, submit(c%8, key, free))
						if err == nil {
							mu.Lock()
							acked[key] = idOf(t, reply)
							mu.Unlock()
							break
						}
						if core.CodeOf(err) != core.Unavailable {
							t.Errorf("submit: %v", err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		seen := map[core.JobID]string{}
		for key, id := range acked {
			if other, twice := seen[id]; twice {
				t.Errorf("job %d was acknowledged for %s and %s", id, key, other)
			}
			seen[id] = key
			if f.job(id) == nil {
				t.Errorf("job %d was acknowledged and is not on disk", id)
			}
		}
		if len(seen) != 200 {
			t.Errorf("%d of 200 submissions were acknowledged", len(seen))
		}
		if jobs, _, _ := f.count(); jobs != 200 {
			t.Errorf("200 keys made %d jobs", jobs)
		}
	})
}

func TestReadOnlyWhileFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		id := idOf(t, must(e, submit(0, "", free)))
		waitFor(t, e, func(s *state.Snapshot) bool { j, ok := s.Job(id); return ok && j.State == core.Running })
		_, _, loads := f.count()

		f.set(func(f *fakestore) { f.full = true })
		if _, err := Do(t.Context(), e.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("without room a submission got %v", err)
		}
		synctest.Wait()
		if e.ReadOnly() == "" {
			t.Fatal("the engine does not say that it is read-only")
		}
		if _, err := Do(t.Context(), e.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("read-only, a submission got %v", err)
		}
		if _, ok := e.Snapshot().Job(id); !ok {
			t.Fatal("reads do not work while the store is full")
		}
		exited := make(chan error, 1)
		go func() {
			_, err := Urgent(t.Context(), e.Engine, &state.Exited{Node: "n1", Job: id, Attempt: 1, Step: "batch", JobDone: true})
			exited <- err
		}()
		time.Sleep(time.Hour)
		if _, _, now := f.count(); now != loads {
			t.Fatalf("while full the state was loaded %d times", now-loads)
		}
		select {
		case err := <-exited:
			t.Fatalf("an exit was answered with %v while nothing could be written", err)
		default:
		}

		f.set(func(f *fakestore) { f.full = false })
		if err := <-exited; err != nil {
			t.Fatalf("the exit that waited: %v", err)
		}
		if j := f.job(id); j.State != core.Completed {
			t.Fatalf("the exit that waited is not on disk: %v", j.State)
		}
		must(e, submit(0, "k"))
		if _, _, now := f.count(); now != loads+1 {
			t.Fatalf("the state was loaded %d times for one failure", now-loads)
		}
	})
}

func TestStoreThatOnlyProbes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{Probe: time.Second})
		e.people(1)
		_, _, before := f.count()
		f.set(func(f *fakestore) { f.fate = func(int) (bool, error) { return false, errAway } })
		began := time.Now()
		for time.Since(began) < time.Minute {
			if _, err := Do(t.Context(), e.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
				t.Fatalf("a store that takes nothing: %v", err)
			}
			time.Sleep(10 * time.Millisecond) // as a client that tries again
		}
		if _, _, loads := f.count(); loads-before > 70 {
			t.Fatalf("%d loads in a minute", loads-before)
		}
	})
}

func TestStaleEpochStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		f.set(func(f *fakestore) { f.epoch++ })
		if _, err := Do(t.Context(), e.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("a stale leader answered %v", err)
		}
		if err := <-e.done; !errors.Is(err, store.ErrStale) {
			t.Fatalf("Run of a stale leader: %v", err)
		}
		if jobs, _, _ := f.count(); jobs != 0 {
			t.Fatalf("a stale leader wrote %d jobs", jobs)
		}
	})
}

func TestLeadershipIsWaitedForAndGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		first := start(t, f, Config{Holder: "a", Lease: 5 * time.Second})
		first.people(1)
		second := start(t, f, Config{Holder: "b", Lease: 5 * time.Second})
		time.Sleep(time.Minute) // the first one renews
		if _, err := Do(t.Context(), second.Engine, submit(0, "k")); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("one that does not lead answered %v", err)
		}
		if err := first.stop(); err != nil {
			t.Fatalf("Run of the first: %v", err)
		}
		began := time.Now()
		<-second.Leading()
		if took := time.Since(began); took > 2*time.Second {
			t.Fatalf("the second led %v after the first gave up", took)
		}
		must(second, submit(0, "k"))

		// Somebody takes the lead by force: the next renewal ends this one.
		f.set(func(f *fakestore) { f.epoch++; f.holder = "c" })
		if err := <-second.done; !errors.Is(err, store.ErrStale) {
			t.Fatalf("Run without the lead: %v", err)
		}
	})
}

func TestInboxIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{Inbox: 8, MaxBatch: 1})
		e.people(1)
		id := idOf(t, must(e, submit(0, "", free)))
		waitFor(t, e, func(s *state.Snapshot) bool { j, ok := s.Job(id); return ok && j.State == core.Running })
		synctest.Wait()
		gate := make(chan struct{})
		f.set(func(f *fakestore) { f.gate = gate })

		var wg sync.WaitGroup
		var mu sync.Mutex
		answers := map[core.Code]int{}
		send := func(u int) {
			wg.Go(func() {
				_, err := Do(t.Context(), e.Engine, submit(u, ""))
				mu.Lock()
				answers[core.CodeOf(err)]++
				mu.Unlock()
			})
			synctest.Wait()
		}
		refused := func(want int, why string) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if answers[core.Exhausted] != want || len(answers) > 1 {
				t.Fatalf("%s: %v", why, answers)
			}
		}
		send(0) // being committed
		send(0) // applied, waiting for the committer
		for range 2 {
			send(0)
		}
		send(0)
		mu.Lock()
		if answers[core.Exhausted] != 1 {
			t.Fatalf("a user with a quarter of the inbox: %v", answers)
		}
		mu.Unlock()
		for _, u := range []int{1, 1, 2, 2, 3, 3} {
			send(u)
		}
		refused(1, "there was room for the others")
		send(4)
		refused(2, "a full inbox")

		cancelled := make(chan error, 1)
		go func() {
			_, err := Urgent(t.Context(), e.Engine, &state.Cancel{By: core.Identity{Admin: true, User: "root"}, Job: id})
			cancelled <- err
		}()
		synctest.Wait()
		select {
		case err := <-cancelled:
			t.Fatalf("an urgent command was not kept: %v", err)
		default:
		}
		close(gate)
		if err := <-cancelled; err != nil {
			t.Fatalf("cancel: %v", err)
		}
		wg.Wait()
		if answers[""] != 10 || answers[core.Exhausted] != 2 {
			t.Fatalf("afterwards: %v", answers)
		}
		if got := e.Stats().Refused; got != 2 {
			t.Fatalf("Stats says %d were refused", got)
		}
	})
}

func TestGracefulStopCommitsWhatWasApplied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		gate := make(chan struct{})
		f.set(func(f *fakestore) { f.gate = gate })
		replies := make(chan error, 3)
		for u := range 3 { // the first is being committed, the others are applied and wait
			go func() {
				_, err := Do(t.Context(), e.Engine, submit(u, ""))
				replies <- err
			}()
			synctest.Wait()
		}
		e.cancel()
		synctest.Wait()
		close(gate)
		if err := <-e.done; err != nil {
			t.Fatalf("Run: %v", err)
		}
		for range 3 {
			if err := <-replies; err != nil {
				t.Errorf("applied before the stop: %v", err)
			}
		}
		if jobs, _, _ := f.count(); jobs != 3 {
			t.Errorf("%d of 3 jobs are on disk", jobs)
		}
	})
}

func TestGroupCommit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		f.set(func(f *fakestore) { f.delay = 5 * time.Millisecond })
		_, before, _ := f.count()
		var wg sync.WaitGroup
		began := time.Now()
		for i := range 1000 {
			wg.Go(func() { must(e, submit(i%8, "")) })
		}
		wg.Wait()
		if _, after, _ := f.count(); after-before > 10 {
			t.Errorf("1000 submissions at once took %d commits", after-before)
		}
		if took := time.Since(began); took > 60*time.Millisecond {
			t.Errorf("with 5 ms a commit they took %v", took)
		}

		time.Sleep(maxGatherWait) // those of the flood are not expected back any more
		began = time.Now()
		must(e, submit(0, ""))
		if took := time.Since(began); took != 5*time.Millisecond {
			t.Errorf("a lone submission took %v", took)
		}
	})
}

// Callers that send one command after the other are kept together: a batch waits for those just answered.
func TestCallersOnASlowDiskShareCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(1)
		f.set(func(f *fakestore) { f.delay = 5 * time.Millisecond })
		_, before, _ := f.count()
		var wg sync.WaitGroup
		for i := range 32 {
			wg.Go(func() {
				for range 20 {
					must(e, submit(i%8, ""))
					time.Sleep(time.Millisecond) // on its way to us again
				}
			})
		}
		wg.Wait()
		if _, after, _ := f.count(); after-before > 25 {
			t.Errorf("32 callers with 20 commands each took %d commits", after-before)
		}
	})
}

func TestSubscribersSeeEveryEventInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		<-e.Leading()
		seq := int64(0)
		cancel := e.Subscribe(func(p *Published) {
			for _, ev := range p.Changes.Events {
				if seq++; ev.Seq != seq {
					t.Errorf("event %d after %d", ev.Seq, seq-1)
				}
			}
			if p.Snapshot.Seq() != seq {
				t.Errorf("the snapshot is at %d, its events at %d", p.Snapshot.Seq(), seq)
			}
		})
		e.people(2)
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { must(e, submit(i%8, "", free)) })
		}
		wg.Wait()
		synctest.Wait()
		if snap := e.Snapshot(); snap.Seq() != seq || seq == 0 {
			t.Errorf("the snapshot is at %d, subscribers at %d", snap.Seq(), seq)
		}
		cancel()
		before := seq
		must(e, submit(0, ""))
		if seq != before {
			t.Error("a subscriber that left was told")
		}
	})
}

// waitFor waits for a state of the published snapshot.
func waitFor(t *testing.T, e *running, ok func(*state.Snapshot) bool) {
	t.Helper()
	got := make(chan struct{}, 1)
	check := func(s *state.Snapshot) {
		if ok(s) {
			select {
			case got <- struct{}{}:
			default:
			}
		}
	}
	defer e.Subscribe(func(p *Published) { check(p.Snapshot) })()
	check(e.Snapshot())
	<-got
}

func TestPlannerStartsJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{})
		e.people(2)
		began := time.Now()
		running := func(id core.JobID) func(*state.Snapshot) bool {
			return func(s *state.Snapshot) bool { j, ok := s.Job(id); return ok && j.State == core.Running }
		}
		at := func(want time.Duration, what string) {
			t.Helper()
			if took := time.Since(began); took != want {
				t.Fatalf("%s after %v, not %v", what, took, want)
			}
		}
		whole := func(s *core.Spec) { s.Hold, s.Shape.CPUsPerTask = false, 4 }
		first := idOf(t, must(e, submit(0, "", whole)))
		waitFor(t, e, running(first))
		second := idOf(t, must(e, submit(0, "", whole)))
		waitFor(t, e, running(second))
		at(0, "idle nodes took them")

		// A third waits, and says why, until one ends.
		third := idOf(t, must(e, submit(0, "", whole)))
		synctest.Wait()
		j, _ := e.Snapshot().Job(third)
		if w := e.Plan().Reason(j); w.Code != core.ReasonResources {
			t.Fatalf("the third waits because %+v", w)
		}
		time.Sleep(time.Minute)
		if _, err := Urgent(t.Context(), e.Engine,
			&state.Exited{Node: "n1", Job: first, Attempt: 1, Step: "batch", JobDone: true}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, e, running(third))
		at(time.Minute, "it started")

		// Time alone: a begin time, and the limit of an allocation.
		if _, err := Urgent(t.Context(), e.Engine,
			&state.Exited{Node: "n2", Job: second, Attempt: 1, Step: "batch", JobDone: true}); err != nil {
			t.Fatal(err)
		}
		later := idOf(t, must(e, submit(0, "", free, func(s *core.Spec) {
			s.Begin, s.Kind, s.TimeLimit = core.At(time.Now().Add(2*time.Hour)), core.Interactive, 600
		})))
		waitFor(t, e, running(later))
		at(2*time.Hour+time.Minute, "it began")
		waitFor(t, e, func(s *state.Snapshot) bool { j, ok := s.Job(later); return ok && j.State == core.Timeout })
		at(2*time.Hour+11*time.Minute, "its limit came")
	})
}

func TestStartsAreWishedForAgainAfterAReload(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{Probe: time.Millisecond})
		e.people(1)
		f.set(func(f *fakestore) { f.fate = failOnce(f.commits+1, false) }) // the commit of submission and start
		if _, err := Do(t.Context(), e.Engine, submit(0, "again", free)); core.CodeOf(err) != core.Unavailable {
			t.Fatalf("a commit that failed answers %v", err)
		}
		synctest.Wait()
		for e.ReadOnly() != "" { // until the store was probed and the state is loaded again
			time.Sleep(time.Millisecond)
		}
		id := idOf(t, must(e, submit(0, "again", free)))
		waitFor(t, e, func(s *state.Snapshot) bool { j, ok := s.Job(id); return ok && j.State == core.Running })
		if got := e.Stats().Reloads; got != 1 {
			t.Fatalf("%d reloads", got)
		}
		if j := f.job(id); j.Attempt != 1 {
			t.Fatalf("a start that was never written counts as attempt: %d", j.Attempt)
		}
	})
}

// What Config.Check refuses is answered with its error and changes nothing.
func TestCheckRefusesInputs(t *testing.T) {
	t.Parallel()
	refusal := core.Errorf(core.Unavailable, "not now")
	e := start(t, newFakestore(), Config{Check: func(in state.Input) error {
		if in, ok := in.(*state.EnsureUser); ok && in.UnixName == "eve" {
			return refusal
		}
		return nil
	}})
	e.people(0)
	if _, err := Do(t.Context(), e.Engine, &state.EnsureUser{UID: 2000, UnixName: "eve"}); !errors.Is(err, refusal) {
		t.Errorf("refused with %v", err)
	}
	must(e, &state.EnsureUser{UID: 2001, UnixName: "bob"})
	if _, ok := e.Snapshot().User("eve"); ok {
		t.Error("a refused input was applied")
	}
	if _, ok := e.Snapshot().User("bob"); !ok {
		t.Error("the next input was not applied")
	}
}
