package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/sched/preempt"
)

// Preempt is the planner's wish to push a job aside, so that another can start when it is gone; it is checked again.
// Reply: nil. A job that is only suspended is so with the other one's Start.
type Preempt struct {
	Job       core.JobID
	For       core.JobID
	Partition core.PartitionName // the other one would start in
	Room      int32              // starts of the other one that jobs make room for
	Nodes     []core.NodeName    // where this is
}

func (*Preempt) input() {}

// PreemptOf and StartOf are the inputs that carry a plan out.
func PreemptOf(p *sched.Preempt) *Preempt {
	return &Preempt{Job: p.Job, For: p.For, Partition: p.Partition, Room: p.Starts, Nodes: p.Nodes}
}

// StartOf is the input of a start.
func StartOf(s *sched.Start) *Start {
	in := &Start{Job: s.Job, Task: s.Task, Alloc: s.Alloc, Limit: s.TimeLimit, Aside: s.Suspends}
	for i := range s.Rest {
		in.Rest = append(in.Rest, *StartOf(&s.Rest[i]))
	}
	return in
}

// preemptionState is who may push whom aside, and who uses whose CPUs.
type preemptionState struct {
	table   *preempt.Rules // nil: nobody
	qos     []*core.QOS    // it was made of
	lenders map[core.JobID]map[core.JobID]bool
}

// refreshPreemption makes the table anew when QOS changed, and tells the planner.
func (s *State) refreshPreemption() {
	if s.cfg.Preemption.Type == core.PreemptNobody {
		return
	}
	qos := named.Sorted(s.rec.QOSByName())
	if s.preemption.table != nil && slices.Equal(qos, s.preemption.qos) {
		return
	}
	s.preemption.qos, s.preemption.table = qos, preempt.NewRules(s.cfg.Preemption, s.cfg.Partitions, qos)
	s.rec.TellPlanner(sched.Changes{Preemption: s.preemption.table})
}

// apply pushes a job aside: it ends as PREEMPTED, or goes back to the queue.
func (in *Preempt) apply(s *State) (None, error) {
	v, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if v.Spec.More().Het != nil && jobs.IsOver(v) {
		return none, nil // it went with another component
	}
	j, err := s.rec.LiveJob(in.For)
	if err != nil {
		return none, err
	}
	if j.State != core.Pending || sched.IsBlocked(j) || j.Eligible > s.rec.Now() {
		return none, core.Errorf(core.Conflict, "job %d does not wait to start", j.ID)
	}
	how, ok := s.preemption.table.MayPreempt(j, in.Partition, v, s.rec.Now())
	if !ok || how.How == core.PreemptSuspend {
		return none, core.Errorf(core.Conflict, "job %d may not preempt job %d", j.ID, v.ID)
	}
	edit := s.jobs.Edit(v)
	next := edit.Job
	next.Pushed = s.preemptionRecord(v, j.ID, how.How)
	gone := s.rec.Now().Add(how.Grace.Duration())
	next.Pushed.Until = gone
	next.Stop = &core.Stop{At: s.rec.Now(), As: core.Preempted, Grace: how.Grace}
	edit.Event(core.JobPreempted, core.Event{Data: s.rec.EventData(preemptData, next)})
	why := fmt.Sprintf("preempted for job %d", j.ID)
	if how.How == core.PreemptRequeue {
		edit.MarkRequeue("", false, why)
	} else {
		edit.End(core.Preempted, "", why)
	}
	edit.Commit()
	first, room := s.jobs.Edit(j), core.Room{Seq: s.rec.Seq()}
	if j.Room != nil {
		room = *j.Room
	}
	room.Starts, room.By = max(room.Starts, in.Room), max(room.By, gone)
	room.Nodes = slices.Clone(room.Nodes)
	for _, n := range in.Nodes {
		if !slices.Contains(room.Nodes, n) {
			room.Nodes = append(room.Nodes, n)
		}
	}
	first.Job.Room = &room
	first.CommitSilently() // the victim's event tells
	return none, nil
}

// preemptionRecord counts once more that a job was preempted.
func (s *State) preemptionRecord(v *core.Job, by core.JobID, how core.PreemptMode) *core.Pushed {
	p := core.Pushed{For: by, At: s.rec.Now(), Mode: how, Times: 1}
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

// lendersFor gives the records of the jobs that lend their CPUs to one that starts, which will have an id.
func (s *State) lendersFor(j *core.Job, in *Start, id core.JobID) ([]*core.Job, error) {
	var out []*core.Job
	for _, x := range in.Aside {
		v, err := s.rec.LiveJob(x.Job)
		if err != nil {
			return nil, err
		}
		how, ok := s.preemption.table.MayPreempt(j, in.Alloc.Partition, v, s.rec.Now())
		if !ok || how.How != core.PreemptSuspend {
			return nil, core.Errorf(core.Conflict, "job %d may not be suspended for job %d", v.ID, j.ID)
		}
		next := jobs.Clone(v)
		if v.Parked() {
			p := *v.Pushed
			next.Pushed = &p
			p.Lent = slices.Clone(p.Lent)
		} else {
			next.Pushed = s.preemptionRecord(v, id, core.PreemptSuspend)
			next.State, next.Paused = core.Suspended, s.rec.Now()
		}
		for _, l := range x.Lent {
			if !canLend(v, &l) {
				return nil, core.Errorf(core.Conflict, "job %d has no such CPUs of %s to lend", v.ID, l.Node)
			}
			if l.To, l.Until = id, 0; jobs.TimeLimitOf(j.Spec) > 0 {
				l.Until = s.rec.Now() + jobs.TimeLimitOf(j.Spec)
			}
			next.Pushed.Lent = append(next.Pushed.Lent, l)
		}
		out = append(out, next)
	}
	return out, nil
}

// canLend tells whether a job has CPUs to lend.
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

// placementFreeWith is free with some jobs lending what they are about to.
func (s *State) placementFreeWith(j *core.Job, al *core.Alloc, lenders []*core.Job) bool {
	for _, next := range lenders {
		v, _ := s.rec.Job(next.ID)
		s.cluster.Release(v)
		s.cluster.Allocate(next)
	}
	ok := s.cluster.PlacementFree(j, al)
	for _, next := range lenders {
		v, _ := s.rec.Job(next.ID)
		s.cluster.Release(next)
		s.cluster.Allocate(v)
	}
	return ok
}

// suspendLenders carries a Start's suspensions out.
func (s *State) suspendLenders(lenders []*core.Job) {
	for _, next := range lenders {
		old, _ := s.rec.Job(next.ID)
		edit := s.jobs.EditRecord(next)
		if old.State != next.State {
			edit.CommitWith(core.JobPreempted, core.Event{Data: s.rec.EventData(preemptData, next)})
		} else {
			edit.CommitSilently() // it lends more
		}
	}
}

// lendersChanged keeps who uses whose CPUs.
func (s *State) lendersChanged(old, j *core.Job) {
	if old != nil && old.Parked() {
		for i := range old.Pushed.Lent {
			to := old.Pushed.Lent[i].To
			if delete(s.preemption.lenders[to], old.ID); len(s.preemption.lenders[to]) == 0 {
				delete(s.preemption.lenders, to)
			}
		}
	}
	if !j.Parked() || !j.Live() {
		return
	}
	for i := range j.Pushed.Lent {
		to := j.Pushed.Lent[i].To
		if s.preemption.lenders == nil {
			s.preemption.lenders = map[core.JobID]map[core.JobID]bool{}
		}
		if s.preemption.lenders[to] == nil {
			s.preemption.lenders[to] = map[core.JobID]bool{}
		}
		s.preemption.lenders[to][j.ID] = true
	}
}

// returnLentCPUs gives CPUs back that a job had borrowed on nodes it no longer holds. Who has all of his own goes on.
func (s *State) returnLentCPUs(j *core.Job) {
	lenders := make([]core.JobID, 0, len(s.preemption.lenders[j.ID]))
	for id := range s.preemption.lenders[j.ID] {
		lenders = append(lenders, id)
	}
	slices.Sort(lenders)
	for _, id := range lenders {
		v, _ := s.rec.Job(id)
		left := slices.DeleteFunc(slices.Clone(v.Pushed.Lent), func(l core.Lent) bool {
			return l.To == j.ID && !(j.Live() && j.Alloc != nil && jobs.HoldsNode(j, l.Node))
		})
		if len(left) == len(v.Pushed.Lent) {
			continue
		}
		edit, p := s.jobs.Edit(v), *v.Pushed
		next := edit.Job
		p.Lent = left
		next.Pushed = &p
		goesOn := len(left) == 0 && v.State == core.Suspended && !jobs.IsOver(v)
		if goesOn {
			p.Lent = nil
			next.State = core.Running
			next.PausedFor += s.rec.Now().Sub(v.Paused)
			next.Paused = 0
		}
		if goesOn {
			edit.CommitWith(core.JobUpdated, core.Event{Data: []byte(`{"state":"RUNNING"}`)})
		} else {
			edit.CommitSilently() // it still waits for the rest
		}
	}
}

// checkpoint notes that a job has saved its work.
func (s *State) checkpoint(in *UpdateJob, next *core.Job) error {
	if in.Checkpoint == nil {
		return nil
	}
	at := *in.Checkpoint
	if next.State != core.Running && next.State != core.Suspended {
		return core.Errorf(core.Conflict, "job %d %s and has no work to save", next.ID,
			next.State.Phrase()).Because("job_state")
	}
	if at == 0 {
		at = s.rec.Now()
	}
	if at < next.Start || at > s.rec.Now() {
		return core.Errorf(core.Invalid, "checkpoint: the time must be between the start of the job and now").Because(
			"checkpoint")
	}
	next.Checkpoint = at
	return nil
}
