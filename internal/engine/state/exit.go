package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/runlife"
)

// apply takes the report of a step's end. It may come twice, late, or for an attempt that is long over.
func (in *Exited) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil || !jobs.HoldsNode(j, in.Node) {
		return none, nil // over and recorded, or never ours: the agent may forget it
	}
	clean := in.JobDone
	report := (*jobs.ExitReport)(in)
	if in.Cause == jobs.CauseUnkillable {
		s.nodes.Drain(in.Node, "Kill task failed")
		clean = true // what is left is the administrator's; the node takes nothing new until then
	}
	prologFailed := func() {
		if in.Cause == jobs.CauseProlog {
			s.nodes.Drain(in.Node, "Prolog error")
		}
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	switch in.Step {
	case "batch":
		if !clean && in.Usage == (core.Usage{}) { // else its usage tells
			next.Flags |= core.ScriptEnded
		}
		if j.Usage == (core.Usage{}) && j.Exit == (core.Exit{}) {
			next.Exit, next.Usage, next.Image = in.Exit, in.Usage, in.Image
			if ranks := in.ranksOf(j); len(ranks) > 0 {
				next.OwnLife().Ranks = ranks
			}
		}
		if !jobs.IsOver(j) {
			prologFailed()
			edit.BatchExited(report)
		}
	case "extern":
		if !jobs.IsOver(j) {
			prologFailed()
			edit.ContainerExited(report)
		}
	default:
		s.jobs.StepExited(j, report)
		in.addRank(next)
		if !jobs.IsOver(j) {
			prologFailed()
			edit.StepExited(report)
			runlife.Disconnected(next, s.rec.LiveSteps(j.ID), s.rec.Now())
		}
	}
	if clean && jobs.IsOver(next) { // a job that goes on is not done, whatever a step's end says
		edit.NodeClean(in.Node)
		return none, nil
	}
	edit.CommitIfChanged(j)
	return none, nil
}

// apply takes an agent's word that a node is clean of a job.
func (in *NodeDone) apply(s *State) (None, error) {
	j, ok := s.rec.Job(in.Job)
	if !ok || j.Attempt != in.Attempt || j.Alloc == nil {
		return none, nil
	}
	if !jobs.IsOver(j) || !jobs.HoldsNode(j, in.Node) {
		return none, nil // a job that goes on is not done, whatever a late message says
	}
	edit := s.jobs.Edit(j)
	edit.NodeClean(in.Node)
	return none, nil
}

// apply ends an interactive job that its creator gives back.
func (in *AllocDone) apply(s *State) (None, error) {
	j, err := s.rec.LiveJob(in.Job)
	if err != nil {
		return none, err
	}
	if err := s.rec.AuthorizeJob(in.By, j); err != nil {
		return none, err
	}
	if j.Spec.Kind != core.Interactive {
		return none, core.Errorf(core.Invalid, "job %d is a batch job; it ends with its script", j.ID)
	}
	if j.State.Final() {
		return none, nil
	}
	edit := s.jobs.Edit(j)
	next := edit.Job
	next.Exit = in.Exit
	st := core.Completed
	why := core.ReasonNone
	switch in.Exit {
	case core.Exit{}:
	case core.ExitOOM:
		st, why = core.OutOfMemory, core.ReasonOutOfMemory
	default:
		st, why = core.Failed, core.ReasonNonZeroExit
	}
	if j.State == core.Pending {
		st = core.Cancelled
	}
	edit.End(st, why, "")
	edit.Commit()
	return none, nil
}

// addRank keeps how the commands of a run of processes ended on one of its nodes, where they ended by themselves: they
// are the first step of its script.
func (in *Exited) addRank(j *core.Job) {
	if j.Spec.Run == "" || j.Spec.More().Container != nil || len(j.Alloc.Nodes) < 2 || in.Step != "0" ||
		in.Cause != jobs.CauseExit {
		return
	}
	rank := slices.IndexFunc(j.Alloc.Nodes, func(n core.NodeAlloc) bool { return n.Node == in.Node })
	var have []core.RankExit
	if j.Life != nil {
		have = j.Life.Ranks
	}
	if rank < 0 || slices.ContainsFunc(have, func(r core.RankExit) bool { return int(r.Rank) == rank }) {
		return // it was told before
	}
	j.OwnLife().Ranks = append(slices.Clone(have),
		core.RankExit{Rank: int32(rank), Code: in.Exit.Code, Signal: in.Exit.Signal})
}

// maxGroupRanks bounds the ranks of a run of several groups: the job of one does not know how many the others have.
const maxGroupRanks = 1024

// ranksOf are the ends by rank, at most one for each node: root in a container is among those who say how many there
// are, and they stay with the job.
func (in *Exited) ranksOf(j *core.Job) []core.RankExit {
	most := 0
	if j.Alloc != nil {
		most = len(j.Alloc.Nodes)
	}
	if j.Spec.More().Het != nil {
		most = max(most, maxGroupRanks)
	}
	return in.Ranks[:min(len(in.Ranks), most)]
}
