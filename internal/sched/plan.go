package sched

import (
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
	"bireme.dev/bireme/internal/sched/provision"
)

// Plan is the result of a pass. It is never changed. The engine checks each start again and carries it out.
type Plan struct {
	Now    core.Time
	Starts []Start
	// Preempts are jobs to preempt, so that others can start when they are gone.
	Preempts []Preempt
	// Provision lists nodes to create or power up.
	Provision []Provision
	// WakeAt is the next time at which a pass may decide otherwise with no change of input, as a begin time; 0: none.
	WakeAt core.Time

	heads         map[core.PartitionName]core.JobID   // the head of each blocked queue
	throttled     map[core.JobID]bool                 // jobs that wait for their array's limit on running tasks
	classReasons  map[classKey]Reason                 // classes that none of their partitions could hold
	expected      map[core.JobID]core.Time            // latest start of jobs with a reservation
	preemptStarts map[core.JobID]int                  // number of starts for which jobs are preempted, by preemptor
	keyFunc       func(*core.Job, core.Time) classKey // see classSet.newKeyFunc
	limits        *policy.View                        // the limits' counters as of this pass
	whoFunc       func(*core.Spec, core.PartitionName) (policy.Who, bool)
	reservedOn    map[core.JobID][]core.NodeName  // their nodes, for up to maxReservedOn jobs
	provisioned   map[core.JobID]provision.Served // jobs that provisioned nodes could hold
	hetReasons    map[core.JobID]Reason           // het jobs that are in no queue, by first component
	forecast      *Forecast                       // for jobs that are not in expected; see WithForecast

	licenseReasons map[classKey]Reason        // classes that wait for licenses
	advanceReasons map[core.JobID]core.Reason // heads that advance reservations keep from starting
	advanceHeads   map[string]core.JobID      // the head of each advance reservation
	advanceBegins  map[string]core.Time       // begin of advance reservations that lies ahead
	overLimit      map[core.JobID]Reason      // jobs whose placement would exceed a limit
}

// Start is a job, or a task of an array, to start now.
type Start struct {
	Job   core.JobID
	Task  int32
	Array bool
	Alloc *core.Alloc
	// Rest are the other components of a het job: all start or none.
	Rest      []Start
	TimeLimit core.Seconds `json:"Limit,omitempty"` // replaces its own time limit; 0: it does not
	Suspends  []Suspend    `json:"Aside,omitempty"` // jobs to suspend for it; it gets CPUs of theirs
}

// Backfilled counts the starts that pass a job of the same partition which waits for nodes.
func (p *Plan) Backfilled() (n int) {
	for i := range p.Starts {
		if p.heads[p.Starts[i].Alloc.Partition] != 0 {
			n++
		}
	}
	return n
}

// Preempt is a job to preempt now, so that another can start when it is gone.
type Preempt struct {
	Job       core.JobID
	For       core.JobID
	Partition core.PartitionName // in which the other would start
	Starts    int32              `json:"Room"` // starts of the other for which jobs are preempted
	Nodes     []core.NodeName    // on which the other would start
}

// Suspend is a job to suspend, or suspended already, and the CPUs that another job gets from it.
type Suspend struct {
	Job  core.JobID
	Lent []core.Lent // To is the job that starts
}

// Components returns all jobs that start together: one, or the components of a het job.
func (s *Start) Components() []Start {
	if s.Rest == nil {
		return []Start{*s}
	}
	first := *s
	first.Rest = nil
	return append([]Start{first}, s.Rest...)
}

// Reason is why a job waits.
type Reason struct {
	Code core.Reason
	Text string // a sentence
	// Expected is when the job should start, if the plan knows; Estimate marks a forecast.
	Expected core.Time
	Estimate bool
}

// Reason returns why a pending job waits: from the job itself if that is enough, else from the pass.
func (p *Plan) Reason(j *core.Job) Reason {
	if p == nil {
		p = &Plan{}
	}
	w := p.waitReason(j)
	if len(p.provisioned) > 0 {
		w = p.withProvision(j, w)
	}
	return w
}

func (p *Plan) waitReason(j *core.Job) Reason {
	if w, ok := HoldReason(j, p.Now); ok {
		return w
	}
	if len(p.classReasons) > 0 {
		if w, ok := p.classReasons[p.keyFunc(j, p.Now)]; ok {
			return w
		}
	}
	if len(p.licenseReasons) > 0 {
		if w, ok := p.licenseReasons[p.keyFunc(j, p.Now)]; ok {
			w.Expected, w.Estimate, _ = p.Expected(j.ID)
			return w
		}
	}
	if ref := hetRefOf(j); ref != nil {
		if w, ok := p.hetReason(j, ref); ok {
			return w
		}
	}
	if p.throttled[j.ID] {
		w := Reason{Code: core.ReasonArrayTaskLimit, Text: "as many tasks of the array run as its limit allows"}
		w.Expected, w.Estimate, _ = p.Expected(j.ID)
		return w
	}
	if w, ok := p.limitReason(j); ok {
		w.Expected, w.Estimate, _ = p.Expected(j.ID)
		return w
	}
	if p.preemptStarts[j.ID] > 0 {
		at, estimate, _ := p.Expected(j.ID)
		return Reason{
			Code: core.ReasonResources, Text: "it waits for jobs that are being preempted for it", Expected: at,
			Estimate: estimate,
		}
	}
	if j.Spec.More().Reservation != "" {
		return p.advanceReason(j)
	}
	return p.queueReason(j)
}

// queueReason returns the reason of a job that waits in its queues.
func (p *Plan) queueReason(j *core.Job) Reason {
	var ahead core.JobID
	var where core.PartitionName
	for part := range j.Spec.Partition.All() {
		switch h := p.heads[part]; {
		case h == 0:
		case h == j.ID, ahead == 0:
			ahead, where = h, part
		}
	}
	at, estimate, _ := p.Expected(j.ID)
	switch ahead {
	case 0:
		return Reason{Text: "it has not been considered yet"}
	case j.ID:
		w := Reason{
			Code: core.ReasonResources,
			Text: "it is first in its partition and waits for resources that other jobs hold", Expected: at, Estimate: estimate,
		}
		if why, ok := p.advanceReasons[j.ID]; ok {
			w.Code, w.Text = why, "it is first in its partition, and the nodes it needs are reserved before it could end"
		}
		return w
	}
	return Reason{
		Code: core.ReasonPriority, Text: fmt.Sprintf("job %d is ahead of it in partition %s", ahead, where),
		Expected: at, Estimate: estimate,
	}
}

// Expected returns when a pending job starts at the latest if all running jobs use their time limit. An estimate comes
// from the forecast and is no promise: jobs that arrive later may delay it.
func (p *Plan) Expected(id core.JobID) (at core.Time, estimate, ok bool) {
	if p == nil {
		return 0, false, false
	}
	if at, ok = p.expected[id]; ok && at != alloc.Never { // else it waits for a job without a time limit
		return at, false, true
	}
	if at, ok = p.forecast.At(id); ok && p.expected[id] != alloc.Never {
		return max(at, p.Now), true, true
	}
	return 0, false, false
}

// Nodes returns the nodes reserved for a job, if the plan has them.
func (p *Plan) Nodes(id core.JobID) []core.NodeName {
	if p == nil {
		return nil
	}
	return p.reservedOn[id]
}

// planPromises is what a plan says about heads and reservations. Most plans repeat what the last one said.
type planPromises struct {
	heads      map[core.PartitionName]core.JobID
	expected   map[core.JobID]core.Time
	reservedOn map[core.JobID][]core.NodeName
}

// maxSharedPromises is the number of reservations up to which a plan is compared with the last one.
const maxSharedPromises = 64

// sharePromises gives a plan the maps of the last one if they are equal, and keeps its own for the next pass to fill.
func (p *Planner) sharePromises(plan *Plan) {
	made := planPromises{plan.heads, plan.expected, plan.reservedOn}
	if len(made.expected) > maxSharedPromises || !maps.Equal(made.heads, p.lastPromises.heads) ||
		!maps.Equal(made.expected, p.lastPromises.expected) ||
		!maps.EqualFunc(made.reservedOn, p.lastPromises.reservedOn, func(a, b []core.NodeName) bool {
			return slices.Equal(a, b)
		}) {
		p.lastPromises, p.sparePromises = made, planPromises{}
		return
	}
	clear(made.heads)
	clear(made.expected)
	clear(made.reservedOn)
	p.sparePromises = made
	plan.heads, plan.expected, plan.reservedOn = p.lastPromises.heads, p.lastPromises.expected, p.lastPromises.reservedOn
}

// maxReservedOn is for how many jobs a plan keeps the reserved nodes. With EASY that is nearly always all of them.
const maxReservedOn = 256

// addReservation records when a job starts at the latest, and where.
func (p *Plan) addReservation(r *ledger.Reservation) {
	if p.expected == nil {
		p.expected = map[core.JobID]core.Time{}
	}
	if t, ok := p.expected[r.Job]; ok && r.Start >= t {
		return
	}
	p.expected[r.Job] = r.Start
	if p.reservedOn == nil {
		p.reservedOn = map[core.JobID][]core.NodeName{}
	}
	if len(p.reservedOn) < maxReservedOn && r.Start != alloc.Never {
		if r.Names == nil {
			r.Names = make([]core.NodeName, len(r.Nodes))
			for i, node := range r.Nodes {
				r.Names[i] = node.Record.Name
			}
		}
		p.reservedOn[r.Job] = r.Names
	}
}

// HoldReason returns why a job is not eligible, and false if it is.
func HoldReason(j *core.Job, now core.Time) (Reason, bool) {
	switch {
	case j.Flags.Held() && j.Reason == core.ReasonRequeuedHeld:
		return Reason{Code: j.Reason, Text: "it was requeued and is held; `scontrol release` lets it go"}, true
	case j.Flags.Has(core.HeldAdmin) && j.Reason == core.ReasonHeldAdmin && j.Message != "": // by a rule
		return Reason{Code: core.ReasonHeldAdmin, Text: j.Message}, true
	case j.Flags.Has(core.HeldAdmin):
		return Reason{
			Code: core.ReasonHeldAdmin,
			Text: "an administrator holds it; `scontrol release` by one lets it go",
		}, true
	case j.Flags.Has(core.HeldRequeues):
		return Reason{Code: orReason(j.Reason, core.ReasonHoldMaxRequeue), Text: orText(j.Message,
			"it was requeued and is held")}, true
	case j.Flags.Has(core.HeldUser):
		return Reason{Code: core.ReasonHeldUser, Text: "its owner holds it; `scontrol release` lets it go"}, true
	case j.Reason == core.ReasonDependency:
		return Reason{Code: j.Reason, Text: "it waits for " + j.Needs.String()}, true
	case j.Reason == core.ReasonDependencyNever:
		return Reason{Code: j.Reason, Text: "what it waits for can never happen any more: " + j.Needs.String()}, true
	case j.Eligible > max(now, j.Submit): // a job submitted after the plan does not wait for a begin time
		return Reason{Code: core.ReasonBeginTime, Text: "it may not begin before " +
			j.Eligible.Go().UTC().Format("2006-01-02T15:04:05Z"), Expected: j.Eligible}, true
	}
	return Reason{}, false
}

// IsBlocked reports whether something other than time must happen before a pending job may start.
func IsBlocked(j *core.Job) bool {
	return j.Flags.Held() || j.Reason == core.ReasonDependency || j.Reason == core.ReasonDependencyNever
}

func orReason(a, b core.Reason) core.Reason {
	if a != "" {
		return a
	}
	return b
}

func orText(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// ReservedNodes returns the nodes that are reserved for the jobs whose nodes the plan keeps.
func (p *Plan) ReservedNodes() map[core.NodeName]bool {
	out := map[core.NodeName]bool{}
	for _, names := range p.reservedOn {
		for _, n := range names {
			out[n] = true
		}
	}
	return out
}
