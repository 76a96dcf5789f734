package sched

import (
	"math"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched/alloc"
)

// TrialResult is when and where a job would start if it were submitted.
type TrialResult struct {
	Start     core.Time // 0: not known
	Estimate  bool
	Partition core.PartitionName
	CPUs      int64
	Nodes     []core.NodeName // where it would start; of a job with others before it, where it would if it were first
	Preempts  []core.JobID    // that would make room for it
	Reason    Reason          // what it would wait for
}

// Trial computes what would become of a job if it were submitted, and leaves the planner as it was: the job is added, a
// pass is made, the job is removed. The forecast runs in slices of so many operations for as long as more returns true;
// with more nil it runs to its end.
func (p *Planner) Trial(j *core.Job, now core.Time, slice int, more func() bool) TrialResult {
	p.Apply(Changes{Jobs: []*core.Job{j}})
	plan := p.Pass(now)
	out := plan.trialResult(j)
	if out.Start == 0 && !IsBlocked(j) {
		f := p.Forecast(plan)
		done := false
		for !done && (more == nil || more()) {
			done = f.Step(slice)
		}
		if done {
			plan = plan.WithForecast(f)
			out.Reason = plan.Reason(j)
			out.Start, out.Estimate, _ = plan.Expected(j.ID)
		}
	}
	if out.Nodes == nil && out.Start != 0 {
		first := *j
		first.Priority = math.MaxUint32
		p.Apply(Changes{Jobs: []*core.Job{&first}})
		ahead := p.Pass(now).trialResult(&first)
		out.Nodes, out.Partition = ahead.Nodes, ahead.Partition
	}
	gone := *j
	gone.State, gone.End = core.Cancelled, now
	p.Apply(Changes{Jobs: []*core.Job{&gone}})
	return out
}

func (p *Plan) trialResult(j *core.Job) TrialResult {
	all, _ := alloc.RequestedTRES(j.Spec)
	out := TrialResult{CPUs: all.Count("cpu"), Partition: j.Spec.Partition.First()}
	for i := range p.Starts {
		for _, s := range p.Starts[i].Components() {
			if s.Job != j.ID {
				continue
			}
			out.Start, out.Partition, out.CPUs = p.Now, s.Alloc.Partition, 0
			for k := range s.Alloc.Nodes {
				out.Nodes = append(out.Nodes, s.Alloc.Nodes[k].Node)
				out.CPUs += int64(s.Alloc.Nodes[k].CPUs)
			}
			return out // of an array, its first task
		}
	}
	out.Reason = p.Reason(j)
	out.Start, out.Estimate, _ = p.Expected(j.ID)
	out.Nodes = p.Nodes(j.ID)
	for i := range p.Preempts {
		if p.Preempts[i].For == j.ID {
			out.Preempts = append(out.Preempts, p.Preempts[i].Job)
		}
	}
	return out
}
