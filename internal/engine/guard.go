package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// A fault in the code of the planner or of the state must not end the server: it would come up again, meet the same job
// and end again. The two boundaries are here. What fails inside the planner costs the planner, which is built again
// from the state; the job it failed on twice in a row is held. What fails while a command is applied costs the private
// state, which is loaded again as after a commit that failed; the command gets `internal`, and is not taken a third
// time.

// panicError is a panic that was caught.
type panicError struct {
	what  string // was being done
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("%s: %v", p.what, p.value) }

// short is the fault for users: what it was, and nothing of the inside.
func (p *panicError) short() string {
	return string(bytes.ToValidUTF8(fmt.Appendf(nil, "%.200v", p.value), []byte("?")))
}

// guard calls do and catches its panic.
func guard(what string, do func()) (p *panicError) {
	defer func() {
		if v := recover(); v != nil {
			p = &panicError{what: what, value: v, stack: debug.Stack()}
		}
	}()
	do()
	return nil
}

// faults are what the engine remembers of panics, for as long as it runs.
type faults struct {
	planner  map[core.JobID]int // panics of the planner on a job, since its last pass that went well
	total    map[core.JobID]int // the same, since the engine runs
	held     map[core.JobID]int // how often a job was to be held because of it
	streak   int                // of them in a row
	inputs   map[string]int     // panics of the state, by the command
	holds    []jobToHold        // jobs to be held once the state is loaded again
	tickFrom time.Time          // no tick before
	ticks    int                // panics of it in a row
}

// jobToHold is a job that is to be held, and why.
type jobToHold struct {
	job core.JobID
	why string
}

// PanicMessage is the line of a panic in the log. Tests fail on it.
const PanicMessage = "panic in the engine"

// report logs a panic with its stack and a line that `bireme simulate --replay` understands, without scripts and
// environments.
func (e *Engine) report(p *panicError, job core.JobID, rec *state.Record) {
	line := []byte("none")
	if rec != nil {
		if data, err := json.Marshal(rec); err == nil {
			line = data
		}
	}
	e.log.Error(PanicMessage, "what", p.what, "job", job, "panic", fmt.Sprint(p.value), "record", string(line), "stack",
		string(p.stack))
	e.mu.Lock()
	e.stats.Panics++
	e.mu.Unlock()
}

// recordFor is a recording's line that loads the nodes and one job, and so replays what the planner made of it.
func (e *Engine) recordFor(job core.JobID) *state.Record {
	snap := e.snapshot.Load()
	if snap == nil {
		return nil
	}
	img := &state.Image{Seq: snap.Seq(), Now: core.At(e.cfg.Now())}
	for n := range snap.Nodes() {
		if img.Nodes = append(img.Nodes, n); len(img.Nodes) == 1000 {
			break
		}
	}
	if j, ok := snap.Job(job); ok {
		img.Jobs = append(img.Jobs, j)
		img.NextJob = j.ID + 1
	}
	return state.RecordLoad(*e.config.Load(), img)
}

// maxInputFaults is how often a command that makes the state fail is applied.
const maxInputFaults = 2

// inputKey names a command for faults.inputs.
func inputKey(in state.Input) string {
	rec, err := state.RecordInput(in, 0)
	if err != nil {
		return fmt.Sprintf("%T", in)
	}
	return rec.Kind + string(rec.Input)
}

// stateFailed says that the private state is of no use any more because a command made it fail.
type stateFailed struct{ p *panicError }

func (e *stateFailed) Error() string { return "engine: " + e.p.Error() }

// Is makes it a reason to load again.
func (e *stateFailed) Is(target error) bool { return target == errReload }

// applyGuarded applies a command. After a panic the state may be half changed: the writer stops, and all is loaded
// again.
func (w *writer) applyGuarded(in state.Input, command interface{ apply(*state.State) error }) (err error) {
	if w.broken != nil {
		return unavailable(reasonOf(w.broken))
	}
	f := &w.engine.faults
	if len(f.inputs) > 0 && f.inputs[inputKey(in)] >= maxInputFaults {
		return core.Errorf(core.Internal,
			"the server failed on this command before and does not try again until it is restarted; "+
				"the fault is in its log").Because("fault")
	}
	p := guard(fmt.Sprintf("apply %T", in), func() { err = command.apply(w.state) })
	if p == nil {
		return err
	}
	rec, _ := state.RecordInput(in, w.state.Now()) // a submission's may have been completed in part
	job := w.engine.noteFault(in, p)
	if j, ok := w.state.Snapshot().Job(job); ok { // what it came with is lost with it, and would come again
		w.engine.senders.block(sender{user: j.Spec.User})
	}
	w.engine.report(p, job, rec)
	w.broken = &stateFailed{p}
	return core.Errorf(core.Internal, "the server failed on this command; the fault is in its log").Because("fault")
}

// ownCommand is a command of the engine itself, whose reply nobody waits for.
type ownCommand[R any] struct{ state.Command[R] }

func (c ownCommand[R]) apply(s *state.State) error {
	_, err := state.Apply(s, c.Command)
	return err
}

// applyOwn applies a command of the engine itself.
func applyOwn[R any](w *writer, in state.Command[R]) error {
	return w.applyGuarded(in, ownCommand[R]{in})
}

// noteFault remembers on what the state failed, and what follows from it when it is loaded again.
func (e *Engine) noteFault(in state.Input, p *panicError) (job core.JobID) {
	f := &e.faults
	switch in := in.(type) {
	case *state.Start:
		job = in.Job
	case *state.Preempt:
		job = in.For
	case *state.Tick:
		f.ticks++
		f.tickFrom = e.cfg.Now().Add(min(time.Second<<min(f.ticks, 10), 10*time.Minute))
		return 0
	default:
		if user := senderOf(in); user != "" { // another time it says it a little differently
			e.senders.block(sender{user, isUrgent(in)})
			return 0
		}
		if f.inputs == nil || len(f.inputs) > 10_000 {
			f.inputs = map[string]int{}
		}
		f.inputs[inputKey(in)]++
		return 0
	}
	f.holds = append(f.holds, jobToHold{job, p.short()})
	return job
}

// isUrgent reports whether a user's command goes by the urgent lane.
func isUrgent(in state.Input) bool {
	switch in.(type) {
	case *state.Cancel, *state.AllocDone:
		return true
	}
	return false
}

// holdFaulty holds the jobs that the state failed on, now that it was loaded again.
func (w *writer) holdFaulty() {
	f := &w.engine.faults
	for len(f.holds) > 0 && w.broken == nil {
		h := f.holds[0]
		f.holds = f.holds[1:]
		in := &state.PlannerFailed{Job: h.job, Why: h.why}
		w.engine.rec.input(in, w.state.Advance(core.At(w.engine.cfg.Now())))
		if err := applyOwn(w, in); err == nil {
			w.inputs++
			w.feedPlanner()
		}
	}
}

// replanRequest says that the planner failed and needs the whole state again.
type replanRequest struct {
	job core.JobID // to be held; 0: none
	why string
}

// plannerFailed decides what follows from a panic of the planner.
func (e *Engine) plannerFailed(p *panicError, job core.JobID) (r replanRequest, rest time.Duration) {
	e.report(p, job, e.recordFor(job))
	f := &e.faults
	if f.planner == nil {
		f.planner, f.total, f.held = map[core.JobID]int{}, map[core.JobID]int{}, map[core.JobID]int{}
	}
	f.streak++
	later := min(100*time.Millisecond<<min(f.streak, 10), time.Minute)
	if job == 0 {
		return replanRequest{}, later // it is not known whom to hold: planning goes on later, all else does now
	}
	f.planner[job]++
	f.total[job]++
	switch {
	case len(f.planner) > maxHeldSuspects:
		return replanRequest{}, later
	case f.planner[job] < 2 && f.total[job] < maxJobFaults:
		// A planner that is built cold has another try: what this one kept from earlier passes may have been at fault.
		return replanRequest{}, 0
	}
	if f.held[job]++; f.held[job] == 1 {
		later = 0
	}
	return replanRequest{job, p.short()}, later
}

// maxJobFaults is how often the planner may fail on a job though it did not with its next try.
const maxJobFaults = 5

// maxHeldSuspects bounds how many different jobs are held for one fault: more than that are its victims.
const maxHeldSuspects = 16

// plannerRecovered forgets faults after a pass that went well.
func (e *Engine) plannerRecovered() {
	if f := &e.faults; f.streak > 0 {
		f.streak = 0
		clear(f.planner)
	}
}
