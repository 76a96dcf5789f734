package hub

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// lowUse is since when GPUs of a job's attempt have been used less than its run's rule asks for. A server that was
// started since then begins to count again.
type lowUse struct {
	attempt int32
	since   map[core.NodeName]map[int32]core.Time
}

// note takes a sample and gives the report that ends the job, nil if its GPUs are used, or not unused for long enough.
func (l *lowUse) note(j *core.Job, x *core.Sample) *state.GPUUnused {
	rules := j.Spec.Rules()
	if rules == nil || rules.Utilization == nil || j.State != core.Running {
		return nil
	}
	if l.attempt != j.Attempt || l.since == nil {
		*l = lowUse{j.Attempt, map[core.NodeName]map[int32]core.Time{}}
	}
	units := l.since[x.Node]
	if units == nil {
		units = map[int32]core.Time{}
		l.since[x.Node] = units
	}
	var report *state.GPUUnused
	for _, u := range x.GPUs {
		if u.Util >= float64(rules.Utilization.Percent) {
			delete(units, u.Index)
			continue
		}
		if units[u.Index] == 0 {
			units[u.Index] = x.At
		}
		if since := units[u.Index]; x.At.Sub(since) >= rules.Utilization.Window.Duration() {
			report = &state.GPUUnused{Job: j.ID, Attempt: j.Attempt, Node: x.Node, Unit: u.Index, Since: since}
		}
	}
	return report
}
