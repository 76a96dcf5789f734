package dstack

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// RunEnv gives the variables that commands of a run find in their environment, for the node that is rank-th in the
// job's order. all are the jobs of the run that run together, in their order: one, or one a group of nodes. addr gives
// a node's address. The script itself sets DSTACK_WORKING_DIR, because only it finds the home. It gives nil for a job
// that belongs to no run.
func RunEnv(job *core.Job, all []*core.Job, runID string, rank int, addr func(core.NodeName) string) []string {
	if job == nil || job.Spec == nil || job.Spec.Run == "" || job.Alloc == nil || rank < 0 ||
		rank >= len(job.Alloc.Nodes) {
		return nil
	}
	own := &job.Alloc.Nodes[rank]
	nodes := Nodes(all)
	ips := make([]string, len(nodes))
	total := 0
	for i, n := range nodes {
		ips[i] = addr(n.Node)
		total += n.GPUs()
	}
	group := 0
	for i, j := range all {
		if j.ID == job.ID {
			group = i
			rank += len(Nodes(all[:i]))
		}
	}
	env := []string{core.NodeGroup + "=" + strconv.Itoa(group)}
	if len(all) == 1 {
		env = nil
	}
	return append(env, []string{
		"DSTACK_RUN_NAME=" + job.Spec.Run,
		"DSTACK_RUN_ID=" + runID,
		"DSTACK_JOB_ID=" + strconv.FormatInt(int64(job.ID), 10),
		"DSTACK_NODES_NUM=" + strconv.Itoa(len(nodes)),
		"DSTACK_NODE_RANK=" + strconv.Itoa(rank),
		"DSTACK_NODES_IPS=" + strings.Join(ips, "\n"),
		"DSTACK_MASTER_NODE_IP=" + ips[0],
		"DSTACK_GPUS_PER_NODE=" + strconv.Itoa(own.GPUs()),
		"DSTACK_GPUS_NUM=" + strconv.Itoa(total),
	}...)
}

// Nodes are all nodes of jobs, in their order.
func Nodes(all []*core.Job) (out []*core.NodeAlloc) {
	for _, j := range all {
		if j.Alloc == nil {
			continue
		}
		for i := range j.Alloc.Nodes {
			out = append(out, &j.Alloc.Nodes[i])
		}
	}
	return out
}
