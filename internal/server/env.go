package server

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/slurm"
)

// env promises the variables of both front ends: Slurm's to every job, whichever it came by, dstack's to YAML
// runs.
func (s *server) env() hub.Env {
	info := slurm.ClusterInfo{Name: s.Config.Cluster, Counted: s.Config.Step.CountedGPUs}
	info.HasGPUs = func(name core.NodeName) bool {
		n, ok := s.engine.Snapshot().Node(name)
		return ok && core.CountGres(n.Hardware.Gres, "gpu") > 0
	}
	if t := s.Config.CoreTopology(); t != nil {
		info.Node = slurm.PlacesOf(t)
	}
	return hub.Env{
		Batch: func(j *core.Job, rank int) []string {
			return append(append(slurm.BatchEnv(j, rank, info), s.runEnv(j, rank)...), s.hetEnv(j)...)
		},
		Hook: func(j *core.Job, node core.NodeName) []string { return slurm.HookEnv(j, node, info) },
		Step: func(all []slurm.StepPart) []string { return slurm.StepEnv(all, info) },
		Task: func(all []slurm.StepPart, at, node, local int) []string {
			return slurm.TaskEnv(all, at, node, local, info)
		},
	}
}

// hetEnv returns the variables of a het job's script that tell of all components.
func (s *server) hetEnv(j *core.Job) []string {
	ref := j.Spec.More().Het
	if ref == nil {
		return nil
	}
	now := s.engine.Snapshot()
	all := make([]*core.Job, 0, ref.Count)
	for k := range ref.Count {
		c, ok := now.Job(ref.Lead + core.JobID(k))
		if !ok { // it ended in the meantime: so will this one
			return nil
		}
		all = append(all, c)
	}
	return slurm.HetEnv(all)
}

// runEnv returns the variables of a job that is a YAML run on its rank-th node.
func (s *server) runEnv(j *core.Job, rank int) []string {
	if j.Spec.Run == "" {
		return nil
	}
	now := s.engine.Snapshot()
	id := ""
	if r, ok := now.Run(j.Spec.Project, j.Spec.Run); ok {
		id = r.ID
	}
	return dstack.RunEnv(j, hub.Together(now, j), id, rank, addressIn(now))
}

// addressIn returns the address of a node; a name that resolves is as good.
func addressIn(now *state.Snapshot) func(core.NodeName) string {
	return func(name core.NodeName) string {
		if n, ok := now.Node(name); ok && n.Host.Addr != "" {
			return n.Host.Addr
		}
		return string(name)
	}
}
