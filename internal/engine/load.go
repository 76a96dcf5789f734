package engine

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// maxLogged is how many records that cannot be used are logged one by one.
const maxLogged = 100

// build makes the state of what was loaded. A job on whose record that fails is found and held: a server that ended
// here would end again each time it starts.
func (e *Engine) build(img *state.Image) (*state.State, error) {
	st, fault := e.tryBuild(img, img.Jobs)
	if fault != nil {
		e.report(fault, 0, nil)
		if _, bare := e.tryBuild(img, nil); bare != nil { // it is no job's fault
			return nil, fmt.Errorf("the state cannot be built: %w", bare)
		}
		culprits := e.culprits(img, img.Jobs)
		for i, j := range img.Jobs {
			if culprits[j.ID] {
				bad := *j
				bad.Attempt, bad.Message = -1, "the state failed on it: "+fault.short()
				img.Jobs[i] = &bad
			}
		}
		if st, fault = e.tryBuild(img, img.Jobs); fault != nil {
			return nil, fmt.Errorf("the state cannot be built: %w", fault)
		}
	}
	list := st.UnusableRecords()
	for _, u := range list[:min(len(list), maxLogged)] {
		if u.Job == 0 {
			e.log.Error("a stored reservation cannot be used; it reserves nothing", "reservation", u.Reservation,
				"why", u.Why)
			continue
		}
		e.log.Error("a stored record cannot be used; its job is not planned", "job", u.Job, "why", u.Why)
	}
	if len(list) > maxLogged {
		e.log.Error("more stored records cannot be used", "records", len(list)-maxLogged)
	}
	return st, nil
}

// tryBuild makes the state with some of the jobs.
func (e *Engine) tryBuild(img *state.Image, jobs []*core.Job) (st *state.State, fault *panicError) {
	part := *img
	part.Jobs = jobs
	fault = guard("load", func() { st = state.New(*e.config.Load(), &part) })
	return st, fault
}

// culprits finds jobs without which the state can be built: of a half that fails by itself, those of its halves; of one
// that fails only with the other, all.
func (e *Engine) culprits(img *state.Image, jobs []*core.Job) map[core.JobID]bool {
	bad := map[core.JobID]bool{}
	var look func(jobs []*core.Job)
	look = func(jobs []*core.Job) {
		if _, fault := e.tryBuild(img, jobs); fault == nil {
			return
		}
		if len(jobs) == 1 {
			bad[jobs[0].ID] = true
			return
		}
		was := len(bad)
		look(jobs[:len(jobs)/2])
		look(jobs[len(jobs)/2:])
		if len(bad) == was { // together only
			for _, j := range jobs {
				bad[j.ID] = true
			}
		}
	}
	look(jobs)
	return bad
}
