package sched

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// Plan is the outcome of a pass: a value, never changed. The engine turns starts into changes, checking each again.
type Plan struct {
	Now    core.Time
	Starts []Start
	// WakeAt is the next moment at which time alone changes the answer (a begin time); 0: none.
	WakeAt core.Time

	heads map[core.PartitionName]core.JobID // the job each blocked queue waits for
	aside map[core.JobID]Why                // jobs that were looked at and found to have a reason of their own
}

// Start is a job, or a task of an array, to start now.
type Start struct {
	Job   core.JobID
	Task  int32
	Array bool
	Alloc *core.Alloc
}

// Why is the reason a job waits.
type Why struct {
	Reason core.Reason
	Text   string // a sentence
	// Expected is when the job should start, if the plan knows; Estimate marks a forecast.
	Expected core.Time
	Estimate bool
}

// Why tells why a pending job waits: from the job itself where that is enough, else from the pass.
func (p *Plan) Why(j *core.Job) Why {
	if p == nil {
		p = &Plan{}
	}
	if w, ok := Held(j, p.Now); ok {
		return w
	}
	if w, ok := p.aside[j.ID]; ok {
		return w
	}
	blocked := core.JobID(0)
	eachPartition(j.Spec.Partition, func(part core.PartitionName) {
		switch h := p.heads[part]; {
		case h == j.ID:
			blocked = h
		case h != 0 && blocked == 0:
			blocked = h
		}
	})
	switch blocked {
	case 0:
		return Why{Text: "it has not been looked at yet"}
	case j.ID:
		return Why{Reason: core.ReasonResources, Text: "it is first in its partition and waits for resources that other jobs hold"}
	}
	return Why{Reason: core.ReasonPriority, Text: fmt.Sprintf("job %d is ahead of it in partition %s", blocked, j.Spec.Partition)}
}

// Held tells why a job is not even looked at, if so.
func Held(j *core.Job, now core.Time) (Why, bool) {
	switch {
	case j.Flags.Has(core.HeldAdmin):
		return Why{Reason: core.ReasonHeldAdmin, Text: "an administrator holds it; `scontrol release` by one lets it go"}, true
	case j.Flags.Has(core.HeldRequeues):
		return Why{Reason: orReason(j.Reason, core.ReasonHoldMaxRequeue), Text: orText(j.Message, "it was requeued and is held")}, true
	case j.Flags.Has(core.HeldUser):
		return Why{Reason: core.ReasonHeldUser, Text: "its owner holds it; `scontrol release` lets it go"}, true
	case j.Eligible > now:
		return Why{Reason: core.ReasonBeginTime, Text: "it may not begin before " + j.Eligible.Go().Format("2006-01-02T15:04:05"), Expected: j.Eligible}, true
	}
	return Why{}, false
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
