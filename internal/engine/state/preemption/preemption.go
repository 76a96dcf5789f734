// Package preemption has what follows from a preemption: which jobs are asked to go, which lend their CPUs while they
// are suspended, and when they get them back. Who may preempt whom is package sched/preempt.
package preemption

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/preempt"
)

// Preemption is who may preempt whom, and who uses whose CPUs.
type Preemption struct {
	Rules *preempt.Rules // nil: nobody preempts anybody

	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	jobs    *jobs.Editor
	qos     []*core.QOS                        // Rules were made of
	lenders map[core.JobID]map[core.JobID]bool // by the job that uses their CPUs
}

// New makes preemption without rules: see Refresh.
func New(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, ed *jobs.Editor) *Preemption {
	return &Preemption{rec: rec, cfg: cfg, cluster: cl, jobs: ed}
}

// Lenders counts the jobs that have lent CPUs to others.
func (pr *Preemption) Lenders() int { return len(pr.lenders) }

// Refresh makes the rules again when QOS changed, and tells the planner.
func (pr *Preemption) Refresh() {
	if pr.cfg.Preemption.Type == core.PreemptNobody {
		return
	}
	qos := named.Sorted(pr.rec.QOSByName())
	if pr.Rules != nil && slices.Equal(qos, pr.qos) {
		return
	}
	pr.qos, pr.Rules = qos, preempt.NewRules(pr.cfg.Preemption, pr.cfg.Partitions, qos)
	pr.rec.TellPlanner(sched.Changes{Preemption: pr.Rules})
}

// record counts once more that a job was preempted.
func (pr *Preemption) record(v *core.Job, by core.JobID, how core.PreemptMode) *core.Pushed {
	p := core.Pushed{For: by, At: pr.rec.Now(), Mode: how, Times: 1}
	if v.Pushed != nil {
		p.Times += v.Pushed.Times
	}
	return &p
}

func preemptData(j *core.Job) json.RawMessage {
	b := append(make([]byte, 0, 64), `{"for":`...)
	b = strconv.AppendInt(b, int64(j.Pushed.For), 10)
	b = append(b, `,"mode":"`...)
	b = append(append(b, j.Pushed.Mode...), '"')
	if j.Stop != nil && j.Stop.Grace > 0 {
		b = append(b, `,"grace":`...)
		b = strconv.AppendInt(b, int64(j.Stop.Grace), 10)
	}
	return append(b, '}')
}

// LendersFor gives the records of the jobs that lend their CPUs to a job that starts in a partition and will have an
// id.
func (pr *Preemption) LendersFor(j *core.Job, part core.PartitionName, suspends []sched.Suspend, id core.JobID) (
	[]*core.Job, error,
) {
	var out []*core.Job
	for _, x := range suspends {
		v, err := pr.rec.LiveJob(x.Job)
		if err != nil {
			return nil, err
		}
		how, ok := pr.Rules.MayPreempt(j, part, v, pr.rec.Now())
		if !ok || how.How != core.PreemptSuspend {
			return nil, core.Errorf(core.Conflict, "job %d may not be suspended for job %d", v.ID, j.ID)
		}
		next := jobs.Clone(v)
		if v.Parked() {
			p := *v.Pushed
			next.Pushed = &p
			p.Lent = slices.Clone(p.Lent)
		} else {
			next.Pushed = pr.record(v, id, core.PreemptSuspend)
			next.State, next.Paused = core.Suspended, pr.rec.Now()
		}
		for _, l := range x.Lent {
			if !canLend(v, &l) {
				return nil, core.Errorf(core.Conflict, "job %d has no such CPUs of %s to lend", v.ID, l.Node)
			}
			if l.To, l.Until = id, 0; jobs.TimeLimitOf(j.Spec) > 0 {
				l.Until = pr.rec.Now() + jobs.TimeLimitOf(j.Spec)
			}
			next.Pushed.Lent = append(next.Pushed.Lent, l)
		}
		out = append(out, next)
	}
	return out, nil
}

// canLend reports whether a job has CPUs to lend.
func canLend(v *core.Job, l *core.Lent) bool {
	al := v.Booked()
	for i := range al.Nodes {
		na := &al.Nodes[i]
		if na.Node != l.Node || na.Done || l.CPUs <= 0 || l.CPUs > na.CPUs {
			continue
		}
		has := true
		for _, c := range l.Cores {
			has = has && slices.Contains(na.Cores, c)
		}
		return has && (len(l.Cores) == int(l.CPUs) || len(na.Cores) == 0)
	}
	return false
}

// FreeWith reports whether a placement is free once some jobs lend what they are about to.
func (pr *Preemption) FreeWith(j *core.Job, al *core.Alloc, lenders []*core.Job) bool {
	for _, next := range lenders {
		v, _ := pr.rec.Job(next.ID)
		pr.cluster.Release(v)
		pr.cluster.Allocate(next)
	}
	ok := pr.cluster.PlacementFree(j, al)
	for _, next := range lenders {
		v, _ := pr.rec.Job(next.ID)
		pr.cluster.Release(next)
		pr.cluster.Allocate(v)
	}
	return ok
}

// SuspendLenders carries a Start's suspensions out.
func (pr *Preemption) SuspendLenders(lenders []*core.Job) {
	for _, next := range lenders {
		old, _ := pr.rec.Job(next.ID)
		edit := pr.jobs.EditRecord(next)
		if old.State != next.State {
			edit.CommitWith(core.JobPreempted, core.Event{Data: pr.rec.EventData(preemptData, next)})
		} else {
			edit.CommitSilently() // it lends more
		}
	}
}

// JobChanged keeps who uses whose CPUs.
func (pr *Preemption) JobChanged(old, j *core.Job) {
	if old != nil && old.Parked() {
		for i := range old.Pushed.Lent {
			to := old.Pushed.Lent[i].To
			if delete(pr.lenders[to], old.ID); len(pr.lenders[to]) == 0 {
				delete(pr.lenders, to)
			}
		}
	}
	if !j.Parked() || !j.Live() {
		return
	}
	for i := range j.Pushed.Lent {
		to := j.Pushed.Lent[i].To
		if pr.lenders == nil {
			pr.lenders = map[core.JobID]map[core.JobID]bool{}
		}
		if pr.lenders[to] == nil {
			pr.lenders[to] = map[core.JobID]bool{}
		}
		pr.lenders[to][j.ID] = true
	}
}

// ReturnLent gives back the CPUs that a job had borrowed on nodes it no longer holds. A lender that has all of its own
// goes on.
func (pr *Preemption) ReturnLent(j *core.Job) {
	if len(pr.lenders[j.ID]) == 0 {
		return
	}
	lenders := make([]core.JobID, 0, len(pr.lenders[j.ID]))
	for id := range pr.lenders[j.ID] {
		lenders = append(lenders, id)
	}
	slices.Sort(lenders)
	for _, id := range lenders {
		v, _ := pr.rec.Job(id)
		left := slices.DeleteFunc(slices.Clone(v.Pushed.Lent), func(l core.Lent) bool {
			return l.To == j.ID && !(j.Live() && j.Alloc != nil && jobs.HoldsNode(j, l.Node))
		})
		if len(left) == len(v.Pushed.Lent) {
			continue
		}
		edit, p := pr.jobs.Edit(v), *v.Pushed
		next := edit.Job
		p.Lent = left
		next.Pushed = &p
		goesOn := len(left) == 0 && v.State == core.Suspended && !jobs.IsOver(v)
		if goesOn {
			p.Lent = nil
			next.State = core.Running
			next.PausedFor += pr.rec.Now().Sub(v.Paused)
			next.Paused = 0
		}
		if goesOn {
			edit.CommitWith(core.JobUpdated, core.Event{Data: []byte(`{"state":"RUNNING"}`)})
		} else {
			edit.CommitSilently() // it still waits for the rest
		}
	}
}

// A Request is a planner's wish that a victim goes, so that another job can start.
type Request struct {
	Victim, For *core.Job
	Partition   core.PartitionName // that For would start in
	Starts      int32              // of For that room is made for
	Nodes       []core.NodeName    // where the room is
}

// Preempt makes a victim go: it ends as PREEMPTED, or goes back to the queue. The preemptor's record notes the room.
func (pr *Preemption) Preempt(in Request) error {
	v, j := in.Victim, in.For
	how, ok := pr.Rules.MayPreempt(j, in.Partition, v, pr.rec.Now())
	if !ok || how.How == core.PreemptSuspend {
		return core.Errorf(core.Conflict, "job %d may not preempt job %d", j.ID, v.ID)
	}
	edit := pr.jobs.Edit(v)
	next := edit.Job
	next.Pushed = pr.record(v, j.ID, how.How)
	gone := pr.rec.Now().Add(how.Grace.Duration())
	next.Pushed.Until = gone
	next.Stop = &core.Stop{At: pr.rec.Now(), As: core.Preempted, Grace: how.Grace}
	edit.Event(core.JobPreempted, core.Event{Data: pr.rec.EventData(preemptData, next)})
	why := fmt.Sprintf("preempted for job %d", j.ID)
	if how.How == core.PreemptRequeue {
		edit.MarkRequeue("", false, why)
	} else {
		edit.End(core.Preempted, "", why)
	}
	edit.Commit()
	first, room := pr.jobs.Edit(j), core.Room{Seq: pr.rec.Seq()}
	if j.Room != nil {
		room = *j.Room
	}
	room.Starts, room.By = max(room.Starts, in.Starts), max(room.By, gone)
	room.Nodes = slices.Clone(room.Nodes)
	for _, n := range in.Nodes {
		if !slices.Contains(room.Nodes, n) {
			room.Nodes = append(room.Nodes, n)
		}
	}
	first.Job.Room = &room
	first.CommitSilently() // the victim's event tells
	return nil
}
