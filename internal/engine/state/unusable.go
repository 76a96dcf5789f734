package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// UnusableRecord is a record that was read from the store and that admission would not have let in: written by a build
// without today's checks, or by somebody else. Its job is not planned; one that waits is held until it is cancelled.
type UnusableRecord struct {
	Job core.JobID
	Why string
}

// UnusableRecord lists the records that could not be used as they were, by number.
func (s *State) UnusableRecords() []UnusableRecord {
	out := make([]UnusableRecord, 0, len(s.unusable))
	for id, why := range s.unusable {
		out = append(out, UnusableRecord{id, why})
	}
	slices.SortFunc(out, func(a, b UnusableRecord) int { return int(a.Job - b.Job) })
	return out
}

// unusableHeld begins the message of a job that is held because of its record.
const unusableHeld = "its stored record cannot be used, and it is held until it is cancelled: "

// usableRecord gives the record to begin with: the one there is, or one that can do no harm in its place. What is
// stored stays as it is until the job changes.
func (s *State) usableRecord(j *core.Job) *core.Job {
	why := checkStored(j)
	if why == "" {
		return j
	}
	if s.unusable == nil {
		s.unusable = map[core.JobID]string{}
	}
	s.unusable[j.ID] = why
	next := *j
	next.Spec = placeholderSpec(j.Spec)
	next.Needs, next.Room, next.Attempt, next.Steps = nil, nil, max(0, j.Attempt), max(0, j.Steps)
	if a := next.Array; a != nil && (a.Base <= 0 || !next.IsArray() && a.Task < 0) {
		next.Array = nil
	}
	if j.State > core.OutOfMemory || j.Alloc == nil && (j.State == core.Running || j.State == core.Suspended) {
		next.State = core.Pending
	}
	next.Alloc = placeholderAlloc(j.Alloc)
	if next.State == core.Pending {
		next.Alloc = nil
		next.Flags |= core.HeldAdmin
		next.Reason, next.Message, next.Priority = core.ReasonHeldAdmin, unusableHeld+why, 0
	}
	return &next
}

// checkStored tells what is wrong with a record; "" if nothing is.
func checkStored(j *core.Job) string {
	switch {
	case j.Spec == nil:
		return "it says nothing of what was asked for"
	case j.State > core.OutOfMemory:
		return fmt.Sprintf("there is no state %d", j.State)
	case j.Attempt < 0 && j.Message != "":
		return j.Message
	case j.Attempt < 0 || j.Steps < 0:
		return fmt.Sprintf("%d attempts, %d steps", j.Attempt, j.Steps)
	case (j.State == core.Running || j.State == core.Suspended) && j.Alloc == nil:
		return "it runs, and has no nodes"
	case j.Array != nil && (j.Array.Base <= 0 || j.Array.Count < 0 || !j.IsArray() && j.Array.Task < 0):
		return fmt.Sprintf("task %d of %d of array %d", j.Array.Task, j.Array.Count, j.Array.Base)
	}
	for _, check := range []func(*core.Spec) error{checkShape, checkRanges} {
		if err := check(j.Spec); err != nil {
			return err.Error()
		}
	}
	x := j.Spec.More()
	if h := x.Het; h != nil &&
		(h.Count < 1 || h.Count > maxComponents || h.Offset < 0 || h.Offset >= h.Count ||
			h.Lead+core.JobID(h.Offset) != j.ID) {
		return fmt.Sprintf("job %d is no component %d of %d of job %d", j.ID, h.Offset, h.Count, h.Lead)
	}
	if x.TimeAsked < 0 || x.TimeAsked > maxSeconds && x.TimeAsked != core.Forever {
		return fmt.Sprintf("a time limit of %d seconds", x.TimeAsked)
	}
	if j.Needs != nil {
		for i := range j.Needs.Left {
			switch n := &j.Needs.Left[i]; n.Kind {
			case core.NeedAfter, core.NeedAfterAny, core.NeedAfterOK, core.NeedAfterNotOK, core.NeedAfterCorr,
				core.NeedSingleton:
				if n.Delay < 0 || n.Delay > maxSeconds {
					return fmt.Sprintf("a dependency with a delay of %d seconds", n.Delay)
				}
			default:
				return fmt.Sprintf("there is no dependency %q", n.Kind)
			}
		}
	}
	return checkAlloc(j.Alloc)
}

func checkAlloc(al *core.Alloc) string {
	if al == nil {
		return ""
	}
	for i := range al.Nodes {
		na := &al.Nodes[i]
		if na.CPUs < 0 || na.Mem < 0 || na.Mem > maxMemory || na.Tasks < 0 || slices.ContainsFunc(na.Cores, isBadIndex) ||
			slices.ContainsFunc(na.Gres, func(g core.GresAlloc) bool { return slices.ContainsFunc(g.Units, isBadIndex) }) {
			return fmt.Sprintf("%d CPUs %v and %d bytes of memory on node %s", na.CPUs, na.Cores, na.Mem, na.Node)
		}
	}
	return ""
}

// isBadIndex tells whether there can be no CPU or unit of a number.
func isBadIndex(n int32) bool { return n < 0 || n > 1<<16 }

// placeholderSpec is a spec that says whose job it is and asks for nothing.
func placeholderSpec(spec *core.Spec) *core.Spec {
	out := &core.Spec{Name: "unreadable", Shape: core.Shape{Tasks: 1, CPUsPerTask: 1}, TimeLimit: 60}
	if spec == nil {
		return out
	}
	out.Name, out.User, out.UID, out.GID, out.Project, out.Partition, out.QOS = spec.Name, spec.User, spec.UID, spec.GID,
		spec.Project, spec.Partition, spec.QOS
	out.Kind, out.Runtime, out.Run, out.Script, out.Env, out.Args = min(spec.Kind, core.Interactive), spec.Runtime,
		spec.Run, spec.Script, spec.Env, spec.Args
	out.IO, out.From, out.Array = spec.IO, spec.From, spec.Array
	if l := spec.TimeLimit; l > 0 && (l <= maxSeconds || l == core.Forever) {
		out.TimeLimit = l
	}
	return out
}

// placeholderAlloc is what of an allocation can be counted.
func placeholderAlloc(al *core.Alloc) *core.Alloc {
	if al == nil || checkAlloc(al) == "" {
		return al
	}
	out := &core.Alloc{Partition: al.Partition}
	for i := range al.Nodes {
		na := core.NodeAlloc{Node: al.Nodes[i].Node, CPUs: max(0, al.Nodes[i].CPUs), Tasks: max(0, al.Nodes[i].Tasks),
			Done: al.Nodes[i].Done}
		if m := al.Nodes[i].Mem; m >= 0 && m <= maxMemory {
			na.Mem = m
		}
		out.Nodes = append(out.Nodes, na)
	}
	return out
}

// checkUsable refuses changes of a job whose record is not: it can only be cancelled.
func (s *State) checkUsable(j *core.Job) error {
	if why := s.unusable[j.ID]; why != "" {
		return core.Errorf(core.Conflict, "job %d: the stored record cannot be used (%s); it can only be cancelled", j.ID,
			why).Because("job_state")
	}
	return nil
}

// PlannerFailed says that the planner failed and begins anew with all there is, and on which job it failed again and
// again, if that is known: that one is held. Reply: nil.
type PlannerFailed struct {
	Job core.JobID
	Why string
}

func (*PlannerFailed) input() {}

// plannerHeld begins the message of a job that the planner cannot deal with.
const plannerHeld = "the scheduler fails on it, and it is held; `scontrol release` by an administrator tries again: "

func (in *PlannerFailed) apply(s *State) (None, error) {
	if j, ok := s.view.jobs.Get(int64(in.Job)); ok && j.State == core.Pending && !j.Flags.Has(core.HeldAdmin) {
		next := cloneJob(j)
		next.Flags |= core.HeldAdmin
		next.Reason, next.Message, next.Priority, next.Room = core.ReasonHeldAdmin, plannerHeld+in.Why, 0, nil
		s.putJob(next)
		s.event(core.JobUpdated, core.Event{Job: j.ID, User: j.Spec.User})
	}
	s.resendAll()
	return none, nil
}
