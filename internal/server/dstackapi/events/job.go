package events

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// maxParts bounds the jobs of one run, one a node, that events name.
const maxParts = 64

// parts are what events of one job of ours are about: the run, and each of its nodes as a job of dstack's.
type parts struct {
	t      *teller
	e      *core.Event
	j      *core.Job
	run    []wire.EventTarget
	jobs   []wire.EventTarget
	within []string
}

// job words what happened to a job of a run, and to the run.
func (t *teller) job(ctx context.Context, e *core.Event) error {
	j := t.jobs[e.Job]
	if j == nil || j.Spec == nil || j.Spec.Run == "" || !t.view.SeesJob(j) || !t.sees(j.Spec.Project) {
		return nil
	}
	r, err := t.run(ctx, j)
	if err != nil || r == nil {
		return err
	}
	id := wire.RunID(r.ID)
	p := &parts{
		t: t, e: e, j: j, run: []wire.EventTarget{inProject(wire.TargetRun, id, r.Name, r.Project)},
		within: []string{id, wire.UUID(wire.KindProject, string(r.Project))},
	}
	wants, _ := client.Wants(j.Spec.Shape)
	n := int(wants)
	if j.Alloc != nil && len(j.Alloc.Nodes) > 0 {
		n = len(j.Alloc.Nodes)
	}
	for rank := range max(1, min(n, maxParts)) {
		name := fmt.Sprintf("%s-%d-0", r.Name, rank)
		p.jobs = append(p.jobs, inProject(wire.TargetJob, convert.JobUUID(j.ID, rank), name, r.Project))
	}
	switch e.Kind {
	case core.JobSubmitted:
		p.ofRun(r.User, "Run submitted. Status: SUBMITTED")
		p.ofJobs("Job created on run submission. Status: SUBMITTED")
	case core.JobStarted:
		p.started()
	case core.JobRequeued:
		p.requeued()
	case core.JobEnded:
		p.ended()
	case core.RunChanged:
		p.changed()
	default: // no other kinds come here
	}
	return nil
}

// ofRun tells something of the run, which somebody did.
func (p *parts) ofRun(by core.UserName, format string, args ...any) {
	p.t.add(p.e, by, p.within, p.run, format, args...)
}

// ofJobs tells something of each job.
func (p *parts) ofJobs(message string) {
	for rank := range p.jobs {
		p.t.add(p.e, "", p.within, p.jobs[rank:rank+1], "%s", message)
	}
}

// onNode tells something of one job and the node it is on.
func (p *parts) onNode(rank int, a *core.Alloc, message string) {
	if a == nil || rank >= len(a.Nodes) {
		return
	}
	node := string(a.Nodes[rank].Node)
	on := inProject(wire.TargetInstance, wire.UUID(wire.KindInstance, node), node, p.j.Spec.Project)
	p.t.add(p.e, "", p.within, []wire.EventTarget{p.jobs[rank], on}, "%s", message)
}

func (p *parts) started() {
	var d struct{ Attempt int32 }
	if json.Unmarshal(p.e.Data, &d) != nil {
		return
	}
	alloc := p.attempt(func(a *core.Attempt) bool { return a.Attempt == d.Attempt }).Alloc
	for rank := range p.jobs {
		p.onNode(rank, alloc, "Job assigned to instance.")
	}
	p.ofJobs("Job status changed SUBMITTED -> PROVISIONING")
	p.ofRun("", "Run status changed SUBMITTED -> PROVISIONING")
	p.ofJobs("Job status changed PROVISIONING -> RUNNING")
	p.ofRun("", "Run status changed PROVISIONING -> RUNNING")
}

// attempt is the job as it was when one of its earlier attempts was over, else as it is.
func (p *parts) attempt(is func(*core.Attempt) bool) *core.Job {
	if p.j.Earlier != nil {
		for i := range p.j.Earlier.Attempts {
			if a := &p.j.Earlier.Attempts[i]; is(a) {
				old := p.j.As(a)
				return &old
			}
		}
	}
	return p.j
}

// ended tells of an attempt that is over: of the run only if it is the last one.
func (p *parts) ended() {
	j := p.attempt(func(a *core.Attempt) bool { return a.End == p.e.At })
	last := j == p.j && !j.Flags.Has(core.Requeueing)
	run, before := j.RunTermination(), before(j)
	p.jobsEnd(j, func() {
		if !last {
			return
		}
		by := core.UserName("")
		if run == core.RunEndStopped || run == core.RunEndAborted {
			by = p.e.By
		}
		p.ofRun(by, "Run status changed %s -> TERMINATING. Termination reason: %s", before,
			strings.ToUpper(string(run)))
	})
	if last {
		p.ofRun("", "Run status changed TERMINATING -> %s", strings.ToUpper(convert.RunEnd(run)))
	}
}

// before is the status of a job before it ended.
func before(j *core.Job) string {
	if j.Alloc == nil || j.Start == 0 {
		return "SUBMITTED"
	}
	return "RUNNING"
}

// jobsEnd tells the end of an attempt's jobs; between says what is told when all of them are ending.
func (p *parts) jobsEnd(j *core.Job, between func()) {
	for rank := range p.jobs {
		end := convert.End(j, rank)
		text := fmt.Sprintf("Job status changed %s -> TERMINATING. Termination reason: %s", before(j),
			strings.ToUpper(string(end.Reason)))
		if end.Message != "" {
			text += " (" + end.Message + ")"
		}
		p.t.add(p.e, "", p.within, p.jobs[rank:rank+1], "%s", text)
		if end.Reason == core.EndByUser && before(j) == "RUNNING" {
			p.t.add(p.e, "", p.within, p.jobs[rank:rank+1], "Graceful job stop requested")
		}
	}
	between()
	for rank := range p.jobs {
		p.t.add(p.e, "", p.within, p.jobs[rank:rank+1], "Job status changed TERMINATING -> %s",
			strings.ToUpper(convert.End(j, rank).Status))
		p.onNode(rank, j.Alloc, "Job unassigned from instance.")
	}
}

// requeued tells that another attempt waits. One that was sent back while it ran has had no end of its own.
func (p *parts) requeued() {
	var last *core.Attempt
	if p.j.Earlier != nil {
		for i := range p.j.Earlier.Attempts {
			if a := &p.j.Earlier.Attempts[i]; a.End <= p.e.At {
				last = a
			}
		}
	}
	if last != nil && last.End == p.e.At && !last.State.Final() {
		old := p.j.As(last)
		p.jobsEnd(&old, func() {})
	}
	p.ofRun("", "Run status changed RUNNING -> PENDING")
	p.ofJobs("Job created on new submission. Status: SUBMITTED")
	p.ofRun("", "Run status changed PENDING -> SUBMITTED")
}

// changed tells what somebody did to the run itself.
func (p *parts) changed() {
	var d struct {
		Updates int32
		Deleted bool
	}
	if json.Unmarshal(p.e.Data, &d) != nil {
		return
	}
	switch {
	case d.Deleted:
		p.ofRun(p.e.By, "Run deleted")
	case d.Updates > 0 && p.e.By != "":
		p.ofRun(p.e.By, "Run updated. Deployment: %d", d.Updates)
	}
}
