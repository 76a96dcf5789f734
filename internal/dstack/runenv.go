package dstack

import (
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// RunEnv gives the variables that commands of a run find in their environment, for the node that is rank-th in the
// job's order. addr gives a node's address. The script itself sets DSTACK_WORKING_DIR, because only it finds the home.
// It gives nil for a job that belongs to no run.
func RunEnv(job *core.Job, runID string, rank int, addr func(core.NodeName) string) []string {
	if job == nil || job.Spec == nil || job.Spec.Run == "" || job.Alloc == nil || rank < 0 ||
		rank >= len(job.Alloc.Nodes) {
		return nil
	}
	nodes := job.Alloc.Nodes
	ips := make([]string, len(nodes))
	total := 0
	for i := range nodes {
		ips[i] = addr(nodes[i].Node)
		total += nodes[i].GPUs()
	}
	return []string{
		"DSTACK_RUN_NAME=" + job.Spec.Run,
		"DSTACK_RUN_ID=" + runID,
		"DSTACK_JOB_ID=" + strconv.FormatInt(int64(job.ID), 10),
		"DSTACK_NODES_NUM=" + strconv.Itoa(len(nodes)),
		"DSTACK_NODE_RANK=" + strconv.Itoa(rank),
		"DSTACK_NODES_IPS=" + strings.Join(ips, "\n"),
		"DSTACK_MASTER_NODE_IP=" + ips[0],
		"DSTACK_GPUS_PER_NODE=" + strconv.Itoa(nodes[rank].GPUs()),
		"DSTACK_GPUS_NUM=" + strconv.Itoa(total),
	}
}
