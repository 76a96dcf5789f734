package server

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/slurm"
)

// batchEnv gives the variables of a batch script: Slurm's, whichever tongue the job came from.
func batchEnv(j *core.Job, cluster string) []string {
	return slurm.BatchEnv(j, slurm.ClusterInfo{Name: cluster})
}

// stepEnv gives those of a numbered step on its node-th node, whose tasks have the given ranks.
func stepEnv(j *core.Job, st *core.Step, cluster string, node int, ranks []int32) (shared []string, tasks [][]string) {
	all := make([][]int32, len(st.Nodes))
	all[node] = ranks
	for local := range ranks {
		tasks = append(tasks, slurm.TaskEnv(j, st, all, node, local))
	}
	return slurm.StepEnv(j, st, slurm.ClusterInfo{Name: cluster}), tasks
}

// runEnv gives the variables of a job that is a YAML run: dstack's beside those of env.
func (s *server) runEnv(j *core.Job, cluster string) []string {
	env := s.Env(j, cluster)
	if j.Spec.Run == "" {
		return env
	}
	now := s.engine.Snapshot()
	id := ""
	if r, ok := now.Run(j.Spec.Project, j.Spec.Run); ok {
		id = r.ID
	}
	return append(env, dstack.RunEnv(j, id, 0, func(name core.NodeName) string {
		if n, ok := now.Node(name); ok && n.Host.Addr != "" {
			return n.Host.Addr
		}
		return string(name) // a name that resolves is as good as an address
	})...)
}
