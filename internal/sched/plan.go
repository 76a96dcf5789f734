package sched

import (
	"fmt"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// Plan is the outcome of a pass: a value, never changed. The engine turns starts into changes, checking each again.
type Plan struct {
	Now    core.Time
	Starts []Start
	// Preempts are jobs to preempt, so that others can start when they are gone.
	Preempts []Preempt
	// Provision is what nodes should be made or powered up; see growth.
	Provision []Provision
	// WakeAt is the next moment at which time alone changes the answer (a begin time); 0: none.
	WakeAt core.Time

	heads         map[core.PartitionName]core.JobID   // the job each blocked queue waits for
	throttled     map[core.JobID]bool                 // arrays and tasks that wait for their array's limit
	classReasons  map[classKey]Reason                 // classes that no partition of theirs could hold
	expected      map[core.JobID]core.Time            // when jobs with a reservation start at the latest
	preemptStarts map[core.JobID]int                  // jobs that others make room for, and how many starts of them
	keyFunc       func(*core.Job, core.Time) classKey // reads only what never changes of the planner
	limits        *policy.View                        // what limits were held against
	whoFunc       func(*core.Spec, core.PartitionName) (policy.Who, bool)
	reservedOn    map[core.JobID][]core.NodeName // where they will, of a few: see planned
	provisioned   map[core.JobID]provisionInfo   // jobs that nodes which are not there could hold
	hetReasons    map[core.JobID]Reason          // het jobs that are in no queue, by their first component
	forecast      *Forecast                      // of the jobs that expected says nothing of; see With

	licenseReasons map[classKey]Reason        // classes that wait for licences
	advanceReasons map[core.JobID]core.Reason // first jobs of queues that advance reservations keep from starting
	advanceHeads   map[string]core.JobID      // the job each advance reservation waits for
	advanceBegins  map[string]core.Time       // reservations that have not begun, and when they do
	overLimit      map[core.JobID]Reason      // jobs that would get more than a limit allows
}

// Start is a job, or a task of an array, to start now.
type Start struct {
	Job   core.JobID
	Task  int32
	Array bool
	Alloc *core.Alloc
	// Rest are the other components of a het job: all start or none.
	Rest      []Start
	TimeLimit core.Seconds `json:"Limit,omitempty"` // it starts with this time limit instead of its own; 0: with its own
	Suspends  []Suspend    `json:"Aside,omitempty"` // jobs to suspend for it: it gets CPUs of theirs
}

// Preempt is a job to preempt now, so that another can start when it is gone.
type Preempt struct {
	Job       core.JobID
	For       core.JobID
	Partition core.PartitionName // the other one would start in
	Starts    int32              `json:"Room"` // starts of the other one that jobs make room for
	Nodes     []core.NodeName    // where this is
}

// Suspend is a job to suspend, or suspended already, and what of its CPUs another gets.
type Suspend struct {
	Job  core.JobID
	Lent []core.Lent // To is the one that starts
}

// Components are all jobs that start together: one, or the components of a het job.
func (s *Start) Components() []Start {
	if s.Rest == nil {
		return []Start{*s}
	}
	first := *s
	first.Rest = nil
	return append([]Start{first}, s.Rest...)
}

// Reason is the reason a job waits.
type Reason struct {
	Code core.Reason
	Text string // a sentence
	// Expected is when the job should start, if the plan knows; Estimate marks a forecast.
	Expected core.Time
	Estimate bool
}

// Reason tells why a pending job waits: from the job itself where that is enough, else from the pass.
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

// queueReason tells of a job's place in its queues.
func (p *Plan) queueReason(j *core.Job) Reason {
	var ahead core.JobID
	var where core.PartitionName
	alloc.EachPartition(j.Spec.Partition, func(part core.PartitionName) {
		switch h := p.heads[part]; {
		case h == 0:
		case h == j.ID, ahead == 0:
			ahead, where = h, part
		}
	})
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

// Expected is when a pending job starts at the latest, if everything else lasts as long as it may and the plan knows.
// An estimate is no promise: jobs that come later may delay it.
func (p *Plan) Expected(id core.JobID) (at core.Time, estimate, ok bool) {
	if p == nil {
		return 0, false, false
	}
	if at, ok = p.expected[id]; ok && at != alloc.Never { // else it waits for what has no limit
		return at, false, true
	}
	if at, ok = p.forecast.At(id); ok && p.expected[id] != alloc.Never {
		return max(at, p.Now), true, true
	}
	return 0, false, false
}

// Nodes is where a job with a reservation would start, if the plan knows.
func (p *Plan) Nodes(id core.JobID) []core.NodeName {
	if p == nil {
		return nil
	}
	return p.reservedOn[id]
}

// planPromises is what plans tell of heads and reserved starts. Most plans tell the same as the one before.
type planPromises struct {
	heads      map[core.PartitionName]core.JobID
	expected   map[core.JobID]core.Time
	reservedOn map[core.JobID][]core.NodeName
}

// maxSharedPromises is up to how many of them are held against those of the last plan.
const maxSharedPromises = 64

// shares lets a plan that promises what the last one did have its very maps, and keeps its own for the next one to
// fill.
func (p *Planner) sharePromises(plan *Plan) {
	made := planPromises{plan.heads, plan.expected, plan.reservedOn}
	if len(made.expected) > maxSharedPromises || !maps.Equal(made.heads, p.lastPromises.heads) ||
		!maps.Equal(made.expected, p.lastPromises.expected) ||
		!maps.EqualFunc(made.reservedOn, p.lastPromises.reservedOn, func(a, b []core.NodeName) bool {
			return slices.Equal(a,
				b)
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

// maxReservedOn is of how many jobs a plan remembers their nodes: with EASY of all that have a reservation.
const maxReservedOn = 256

// addReservation notes when a job starts at the latest, and where.
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
			for i, a := range r.Nodes {
				r.Names[i] = a.Record.Name
			}
		}
		p.reservedOn[r.Job] = r.Names
	}
}

// HoldReason tells why a job is not even looked at, if so.
func HoldReason(j *core.Job, now core.Time) (Reason, bool) {
	switch {
	case j.Flags.Has(core.HeldAdmin) && j.Reason == core.ReasonHeldAdmin && j.Message != "": // not by a person
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
	case j.Eligible > max(now, j.Submit): // a job submitted after the plan was made is not waiting for its time
		return Reason{Code: core.ReasonBeginTime, Text: "it may not begin before " +
			j.Eligible.Go().UTC().Format("2006-01-02T15:04:05Z"), Expected: j.Eligible}, true
	}
	return Reason{}, false
}

// IsBlocked tells whether something else than time must happen before a pending job may start.
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

// ReservedNodes are the nodes on which the jobs will start whose nodes the plan remembers.
func (p *Plan) ReservedNodes() map[core.NodeName]bool {
	out := map[core.NodeName]bool{}
	for _, names := range p.reservedOn {
		for _, n := range names {
			out[n] = true
		}
	}
	return out
}
