package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/engine/state"
)

// syncBuffer is a log that goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (e *running) job(id core.JobID) *core.Job {
	e.t.Helper()
	j, ok := e.Snapshot().Job(id)
	if !ok {
		e.t.Fatalf("there is no job %d", id)
	}
	return j
}

// A job on which the planner fails is held and says why; all others are planned, before and after a restart.
func TestPlannerFaultHoldsItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		var hits atomic.Int64
		cfg := Config{State: state.Config{FaultForTests: func(j *core.Job) {
			if j.Spec.Name == "evil" && j.State == core.Pending && !j.Flags.Held() {
				hits.Add(1)
				panic("index out of range [3] with length 2")
			}
		}}}
		log := &syncBuffer{}
		ctx, cancel := context.WithCancel(context.Background())
		e := &running{
			Engine: New(f, cfg, slog.New(slog.NewTextHandler(log, nil))), t: t, cancel: cancel,
			done: make(chan error, 1),
		}
		go func() { e.done <- e.Run(ctx) }()
		e.people(2)
		before := idOf(t, must(e, submit(0, "", free)))
		evil := idOf(t, must(e, submit(1, "", free,
			func(s *core.Spec) { s.Name, s.From.Line = "evil", "sbatch --export=KEY=hunter2" })))
		time.Sleep(10 * time.Second)
		after := idOf(t, must(e, submit(2, "", free)))
		time.Sleep(time.Second)
		for _, id := range []core.JobID{before, after} {
			if j := e.job(id); j.State != core.Running {
				t.Errorf("job %d is %s", id, j.State)
			}
		}
		j := e.job(evil)
		if !j.Flags.Has(core.HeldAdmin) || !strings.Contains(j.Message, "index out of range") {
			t.Errorf("the job is %s, flags %v, %q", j.State, j.Flags, j.Message)
		}
		if why := e.Plan().Reason(j); why.Code != core.ReasonHeldAdmin ||
			!strings.Contains(why.Text, "the scheduler fails on it") {
			t.Errorf("why: %+v", why)
		}
		if n := hits.Load(); n != 2 || e.Stats().Panics != 2 {
			t.Errorf("%d faults, %d counted", n, e.Stats().Panics)
		}
		if text := log.String(); !strings.Contains(text, "guard_test.go") || !strings.Contains(text, `load`) {
			t.Errorf("the log has no stack or no record: %s", text)
		} else if strings.Contains(text, "hunter2") {
			t.Error("the log has the submit line of a user")
		}
		if err := e.stop(); err != nil {
			t.Fatal(err)
		}
		e = start(t, f, cfg)
		<-e.Leading()
		later := idOf(t, must(e, submit(3, "", free)))
		time.Sleep(time.Second)
		if j := e.job(later); j.State != core.Running {
			t.Errorf("after a restart job %d is %s", later, j.State)
		}
		if hits.Load() != 2 || e.Stats().Panics != 0 {
			t.Errorf("after a restart the planner failed again")
		}
		// The administrator lets it go, and it is held again.
		no := false
		must(e, &state.UpdateJob{By: core.Identity{User: "u0", Admin: true}, Job: evil, Hold: &no})
		time.Sleep(10 * time.Second)
		if j := e.job(evil); !j.Flags.Has(core.HeldAdmin) {
			t.Errorf("released, it is %s %v", j.State, j.Flags)
		}
		must(e, &state.Cancel{By: core.Identity{User: "u1", UID: 1001}, Job: evil})
	})
}

// A fault that is nobody's does not end the server, and planning goes on when it is over.
func TestPlannerFaultOfNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		e := start(t, newFakestore(), Config{State: state.Config{FaultForTests: func(*core.Job) {
			if broken.Load() {
				panic("everything fails")
			}
		}}})
		e.people(2)
		broken.Store(true)
		var ids []core.JobID
		for i := range 40 {
			ids = append(ids, idOf(t, must(e, submit(i%8, fmt.Sprint(i), free))))
		}
		time.Sleep(5 * time.Minute)
		held := 0
		for _, id := range ids {
			if e.job(id).Flags.Held() {
				held++
			}
		}
		if held > maxHeldSuspects {
			t.Errorf("%d jobs are held for one fault", held)
		}
		broken.Store(false)
		time.Sleep(2 * time.Minute)
		runs := 0
		for _, id := range ids {
			if e.job(id).State == core.Running {
				runs++
			}
		}
		if runs == 0 {
			t.Error("afterwards nothing starts")
		}
	})
}

// A command in the middle of which the state fails gets internal, has changed nothing, and harms no command beside it.
func TestApplyFaultLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{State: state.Config{PutFaultForTests: func(j *core.Job) {
			if j.Spec.Name == "evil" {
				panic("half changed")
			}
		}}})
		e.people(2)
		var ids []core.JobID
		for i := range 5 {
			ids = append(ids, idOf(t, must(e, submit(i%3, "", free))))
		}
		_, err := Do(t.Context(), e.Engine, submit(7, "", func(s *core.Spec) { s.Name = "evil" }))
		if core.CodeOf(err) != core.Internal || core.ReasonOf(err) != "fault" {
			t.Fatalf("the command got %v", err)
		}
		time.Sleep(time.Second)
		for _, id := range ids {
			e.job(id)
		}
		if f.job(ids[4]+1) != nil {
			t.Error("half a job is stored")
		}
		if s := e.Stats(); s.Panics != 1 || s.Reloads != 1 {
			t.Errorf("%+v", s)
		}
		// Who did it waits; others do not.
		if _, err := Do(t.Context(), e.Engine, submit(7, "")); core.CodeOf(err) != core.Exhausted {
			t.Errorf("the user got %v", err)
		}
		must(e, submit(1, ""))
		time.Sleep(time.Minute)
		must(e, submit(7, ""))
	})
}

// Who makes the state fail by ending or requeuing jobs waits too, however the command differs from the one before; a
// submission that failed keeps nobody from ending their jobs.
func TestApplyFaultOfAnyCommand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newFakestore(), Config{State: state.Config{PutFaultForTests: func(j *core.Job) {
			if j.Spec.Name == "evil" || j.Spec.Name == "trap" && j.State == core.Cancelled {
				panic("half changed")
			}
		}}})
		e.people(2)
		var traps []core.JobID
		for range 3 {
			traps = append(traps, idOf(t, must(e, submit(1, "", func(s *core.Spec) { s.Name, s.Hold = "trap", true }))))
		}
		mine := idOf(t, must(e, submit(7, "", func(s *core.Spec) { s.Hold = true })))
		by := e.job(traps[0]).Spec
		cancel := func(id core.JobID) error {
			_, err := Urgent(t.Context(), e.Engine, &state.Cancel{By: core.Identity{User: by.User, UID: by.UID}, Job: id})
			return err
		}
		if err := cancel(traps[0]); core.CodeOf(err) != core.Internal {
			t.Fatalf("the command got %v", err)
		}
		time.Sleep(time.Second)
		for _, id := range traps[1:] {
			if err := cancel(id); core.CodeOf(err) != core.Exhausted || core.ReasonOf(err) != "fault" {
				t.Errorf("the next one got %v", err)
			}
		}
		if s := e.Stats(); s.Panics != 1 || s.Reloads != 1 {
			t.Errorf("%+v", s)
		}
		if _, err := Do(t.Context(), e.Engine,
			submit(7, "", func(s *core.Spec) { s.Name = "evil" })); core.CodeOf(err) != core.Internal {
			t.Fatalf("the submission got %v", err)
		}
		time.Sleep(time.Second)
		him := e.job(mine).Spec
		if _, err := Urgent(t.Context(), e.Engine,
			&state.Cancel{By: core.Identity{User: him.User, UID: him.UID}, Job: mine}); err != nil {
			t.Errorf("the end of one's own job: %v", err)
		}
	})
}

// A start in which the state fails holds its job; a tick in which it fails does not load the state in a loop.
func TestStartFaultHoldsItsJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newFakestore(), Config{State: state.Config{PutFaultForTests: func(j *core.Job) {
			if j.Spec.Name == "evil" && j.State == core.Running {
				panic("it cannot start")
			}
		}}})
		e.people(2)
		evil := idOf(t, must(e, submit(1, "", free,
			func(s *core.Spec) { s.Name, s.Begin = "evil", core.At(time.Now().Add(time.Minute)) })))
		time.Sleep(2 * time.Minute)
		id := idOf(t, must(e, submit(2, "", free)))
		time.Sleep(time.Second)
		if j := e.job(evil); !j.Flags.Has(core.HeldAdmin) {
			t.Errorf("it is %s %v", j.State, j.Flags)
		}
		if j := e.job(id); j.State != core.Running {
			t.Errorf("another is %s", j.State)
		}
		if s := e.Stats(); s.Panics != 1 || s.Reloads != 1 {
			t.Errorf("%+v", s)
		}
		// One that starts with its submission is lost with it: its user waits before the next.
		if _, err := Do(t.Context(), e.Engine,
			submit(4, "", free, func(s *core.Spec) { s.Name = "evil" })); core.CodeOf(err) != core.Unavailable {
			t.Errorf("it got %v", err)
		}
		time.Sleep(time.Second)
		if _, err := Do(t.Context(), e.Engine, submit(4, "", free)); core.ReasonOf(err) != "fault" {
			t.Errorf("its user got %v", err)
		}
		must(e, submit(5, "", free))
	})
}

// Records that admission would not have let in are held when they are loaded, and the server starts.
func TestUnsoundRecordsAreHeld(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*core.Job){
		"het offset over count": func(j *core.Job) {
			j.Spec.Extra = &core.Extra{Het: &core.HetRef{
				Lead: j.ID, Offset: 5,
				Count: 2,
			}}
		},
		"het negative count": func(j *core.Job) { j.Spec.Extra = &core.Extra{Het: &core.HetRef{Lead: j.ID, Count: -1}} },
		"het of another": func(j *core.Job) {
			j.Spec.Extra = &core.Extra{Het: &core.HetRef{
				Lead: 1, Offset: 1,
				Count: 2,
			}}
		},
		"time asked":           func(j *core.Job) { j.Spec.Extra = &core.Extra{TimeAsked: 1 << 61} },
		"negative tasks":       func(j *core.Job) { j.Spec.Shape.Tasks = -5 },
		"negative nodes":       func(j *core.Job) { j.Spec.Shape.NodesMin, j.Spec.Shape.NodesMax = -5, -1 },
		"negative memory":      func(j *core.Job) { j.Spec.Shape.MemPerCPU = -5 },
		"negative gres":        func(j *core.Job) { j.Spec.Shape.Gres = []core.Gres{{Name: "gpu", Count: -9}} },
		"time":                 func(j *core.Job) { j.Spec.TimeLimit = -1 << 62 },
		"no spec":              func(j *core.Job) { j.Spec = nil },
		"running nowhere":      func(j *core.Job) { j.State = core.Running },
		"a strange dependency": func(j *core.Job) { j.Needs = &core.Needs{Left: []core.Need{{Kind: "never", Job: 1}}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakestore()
				e := start(t, f, Config{})
				e.people(2)
				bad := idOf(t, must(e, submit(1, "",
					func(s *core.Spec) { s.Begin = core.At(time.Now().Add(time.Hour)); s.Hold = false })))
				good := idOf(t, must(e, submit(2, "",
					func(s *core.Spec) { s.Begin = core.At(time.Now().Add(time.Hour)); s.Hold = false })))
				if err := e.stop(); err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				j := *f.jobs[bad]
				spec := *j.Spec
				j.Spec = &spec
				spoil(&j)
				f.jobs[bad] = &j
				f.mu.Unlock()
				e = start(t, f, Config{})
				<-e.Leading()
				time.Sleep(2 * time.Hour)
				if j := e.job(good); j.State != core.Running {
					t.Errorf("the other is %s", j.State)
				}
				got := e.job(bad)
				if got.State != core.Pending || !got.Flags.Has(core.HeldAdmin) ||
					!strings.Contains(e.Plan().Reason(got).Text, "stored record cannot be used") {
					t.Errorf("it is %s %v: %+v", got.State, got.Flags, e.Plan().Reason(got))
				}
				no := false
				boss := core.Identity{User: "u0", Admin: true}
				if _, err := Do(t.Context(), e.Engine,
					&state.UpdateJob{By: boss, Job: bad, Hold: &no}); core.CodeOf(err) != core.Conflict {
					t.Errorf("released: %v", err)
				}
				must(e, &state.Cancel{By: boss, Job: bad})
				if e.Stats().Panics != 0 {
					t.Errorf("%d panics", e.Stats().Panics)
				}
			})
		})
	}
}

// Moments more than 292 years ahead, which a Duration cannot hold, do not make the engine or its planner spin.
func TestFarMomentsDoNotSpin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := start(t, newFakestore(), Config{})
		e.people(1)
		far := core.At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
		must(e, submit(1, "", func(s *core.Spec) { s.Begin, s.Hold = far, false }))
		must(e, &state.PutReservation{By: core.Identity{User: "u0", Admin: true}, Reservation: &core.AdvanceReservation{
			Name: "r", Users: []core.UserName{"u1"}, Nodes: "ALL", Start: far, End: far.Add(time.Hour),
		}})
		before := e.Stats()
		time.Sleep(time.Minute)
		if after := e.Stats(); after.Passes-before.Passes > 10 {
			t.Errorf("%d passes in a minute in which nothing happened", after.Passes-before.Passes)
		}
	})
}

// A stored reservation that admission would have refused reserves nothing, is shown with the fault, and can be updated
// or deleted; the server starts, and jobs run.
func TestUnsoundReservationReservesNothing(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*core.AdvanceReservation){
		"negative cores":     func(r *core.AdvanceReservation) { r.CoreCount = -1 << 31 },
		"negative nodes":     func(r *core.AdvanceReservation) { r.NodeCount = -5 },
		"end before start":   func(r *core.AdvanceReservation) { r.End = r.Start - 1 },
		"start before time":  func(r *core.AdvanceReservation) { r.Start = -1 << 63 },
		"end after time":     func(r *core.AdvanceReservation) { r.End = 1<<63 - 1 },
		"recurs in two ways": func(r *core.AdvanceReservation) { r.Flags |= core.ReserveDaily | core.ReserveHourly },
		"recurs in itself":   func(r *core.AdvanceReservation) { r.Flags |= core.ReserveHourly; r.End += 1 << 45 },
		"nodes":              func(r *core.AdvanceReservation) { r.Nodes = "n[1-999999999]" },
		"a hostlist":         func(r *core.AdvanceReservation) { r.Nodes = "n[1-" },
		"features":           func(r *core.AdvanceReservation) { r.Features = coretest.Constraint("[a&&") },
		"licenses":           func(r *core.AdvanceReservation) { r.Licenses = []core.License{{Name: "l", Total: -1 << 62}} },
		"purge": func(r *core.AdvanceReservation) {
			r.PurgeComp = -1 << 62
			r.Flags |= core.ReservePurgeCompleted
		},
		"idle": func(r *core.AdvanceReservation) {
			r.IdleSince = 1<<63 - 1
			r.Flags |= core.ReservePurgeCompleted
		},
		"users": func(r *core.AdvanceReservation) { r.Users = make([]core.UserName, 1<<16) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFakestore()
				e := start(t, f, Config{})
				e.people(2)
				boss := core.Identity{User: "u0", Admin: true}
				must(e, &state.PutReservation{By: boss, Reservation: &core.AdvanceReservation{
					Name: "r", Users: []core.UserName{"u1"}, Nodes: "ALL", Start: core.At(time.Now().Add(time.Hour)),
					End: core.At(time.Now().Add(2 * time.Hour)), Flags: core.ReserveIgnoreJobs,
				}})
				if err := e.stop(); err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				r := *f.reservations["r"]
				spoil(&r)
				f.reservations["r"] = &r
				f.mu.Unlock()
				e = start(t, f, Config{})
				<-e.Leading()
				id := idOf(t, must(e, submit(2, "", free)))
				time.Sleep(3 * time.Hour)
				if j := e.job(id); j.State != core.Running {
					t.Errorf("a job is %s", j.State)
				}
				got, ok := e.Snapshot().Reservation("r")
				if !ok || got.Nodes != "" || !strings.Contains(got.Comment, "stored record cannot be used") {
					t.Fatalf("it is %+v", got)
				}
				begin, end := core.At(time.Now().Add(time.Hour)), core.At(time.Now().Add(2*time.Hour))
				nodes, users := "ALL", []core.UserName{"u1"}
				mended := must(e, &state.UpdateReservation{By: boss, Name: "r", Change: core.ReservationChange{
					Start: &begin, End: &end, Nodes: &nodes, Users: &users,
					SetFlags: core.ReserveIgnoreJobs, DropFlags: core.ReserveAnyNodes,
				}})
				if mended == nil {
					t.Error("it cannot be updated")
				}
				must(e, &state.DropReservation{By: boss, Name: "r"})
				if e.Stats().Panics != 0 {
					t.Errorf("%d panics", e.Stats().Panics)
				}
			})
		})
	}
}

// Trials of one user are bounded and wait behind passes.
func TestTrialsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFakestore()
		e := start(t, f, Config{State: state.Config{TrialsPerUser: 2}})
		e.people(1)
		f.mu.Lock()
		f.gate = make(chan struct{}) // nothing is committed: the trials wait
		f.mu.Unlock()
		held := make(chan struct{})
		go func() { // a commit under way: the batch of the trials stays open
			defer close(held)
			must(e, &state.EnsureUser{UID: 4000, UnixName: "held"})
		}()
		synctest.Wait()
		answers := make(chan error, 10)
		for range 5 {
			go func() {
				_, _, err := e.Try(t.Context(), submit(1, ""))
				answers <- err
			}()
		}
		synctest.Wait()
		refused := 0
		for range 3 {
			if err := <-answers; core.ReasonOf(err) == "trials_per_user" {
				refused++
			}
		}
		if refused != 3 {
			t.Errorf("%d of 5 were refused", refused)
		}
		close(f.gate)
		<-held
		for range 2 {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
		if _, _, err := e.Try(t.Context(), submit(1, "")); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
