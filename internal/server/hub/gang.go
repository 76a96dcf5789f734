package hub

import (
	"context"
	"fmt"
	"net"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/wire"
)

// A job in containers has one on each of its nodes. Where its script runs that is the batch step's; on the other
// nodes, and for a job without a script, a launch of its own holds the container for what joins (extern).

// holder names the launch that has a job's own program or container on a node; empty: there is none.
func holder(j *core.Job, node core.NodeName) string {
	switch {
	case j.Spec.Batches() && j.Alloc.Nodes[0].Node == node:
		return wire.BatchStep
	case j.Spec.More().Container != nil && allocOn(j, node) != nil:
		return wire.ExternStep
	}
	return ""
}

// jobLaunch makes the launch that a job has on a node by itself.
func (b *launchBuilder) jobLaunch(ctx context.Context, j *core.Job, node core.NodeName) (*wire.Launch, error) {
	rank := 0
	for i := range j.Alloc.Nodes {
		if j.Alloc.Nodes[i].Node == node {
			rank = i
		}
	}
	l, err := b.batchLaunch(ctx, j, rank)
	if err != nil || holder(j, node) == wire.BatchStep {
		return l, err
	}
	l.Key.Step, l.EndsJob, l.Container.Hold = wire.ExternStep, false, true
	l.Stdio = wire.Stdio{Names: l.Stdio.Names}
	l.Time.WarnSignal, l.Time.WarnBefore, l.Time.WithJob = 0, 0, true
	return l, nil
}

// Where the SSH servers of the containers of one job are found: below the ports that systems give to whoever asks for
// any.
const (
	firstGangPort = 24000
	gangPorts     = 8000
)

// Together are the jobs whose containers are one whole, in their order: those of a run's groups, else the job alone.
func Together(snap *state.Snapshot, j *core.Job) []*core.Job {
	ref := j.Spec.More().Het
	if ref == nil || j.Spec.Run == "" {
		return []*core.Job{j}
	}
	all := make([]*core.Job, 0, ref.Count)
	for k := range ref.Count {
		part, ok := snap.Job(ref.Lead + core.JobID(k))
		if !ok || part.Alloc == nil { // it has ended: so will this one
			return []*core.Job{j}
		}
		if part.ID == j.ID {
			part = j
		}
		all = append(all, part)
	}
	return all
}

// gangOf is what the container of a job on its rank-th node knows of the others; nil: there are none.
func (b *launchBuilder) gangOf(j *core.Job, rank int) *wire.Gang {
	snap := b.engine.Snapshot()
	all := Together(snap, j)
	lead := all[0]
	var nodes []*core.NodeAlloc
	for _, part := range all {
		if part == j {
			rank += len(nodes)
		}
		for i := range part.Alloc.Nodes {
			nodes = append(nodes, &part.Alloc.Nodes[i])
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	id := fmt.Sprintf("containers of job %d.%d", lead.ID, lead.Attempt)
	g := &wire.Gang{Rank: rank, Each: j.Spec.Run != "", Seed: b.cfg.Secret(id), Patience: b.cfg.ContainerWait}
	if r := j.Spec.Rules(); r != nil {
		g.Order, g.MasterDone = r.StartupOrder, r.StopCriteria == core.StopMasterDone
	}
	local := false // nodes of one machine
	for _, na := range nodes {
		if n, ok := snap.Node(na.Node); ok {
			ip := net.ParseIP(n.Host.Addr)
			local = local || ip != nil && ip.IsLoopback()
		}
	}
	port := b.gangPort(all, local)
	for i, na := range nodes {
		p := wire.Peer{Node: na.Node, Addr: string(na.Node), Port: port, Slots: na.GPUs()}
		if !g.Each {
			p.Slots = int(na.Tasks)
		}
		if n, ok := snap.Node(na.Node); ok && n.Host.Addr != "" {
			p.Addr = n.Host.Addr
		}
		if local {
			p.Port = firstGangPort + (port-firstGangPort+i)%gangPorts
		}
		g.Peers = append(g.Peers, p)
	}
	return g
}

// gangPort is the port of the containers of jobs, the first of them where their nodes are one machine: one that no
// other job on their nodes has. It stays while the first job's attempt does, for containers are launched one by one.
func (h *Hub) gangPort(all []*core.Job, local bool) int {
	j := all[0]
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := h.jobs[j.ID]
	if mine != nil && mine.gang != 0 && mine.job.Attempt == j.Attempt {
		return mine.gang
	}
	taken := map[int]bool{}
	take := func(others []*core.Job, port int) {
		for i := range gangSpan(others, local) {
			taken[firstGangPort+(port-firstGangPort+i)%gangPorts] = true
		}
	}
	for id, t := range h.jobs {
		o := t.job
		if id == j.ID || o.Alloc == nil || o.Spec.More().Container == nil || !leads(o) {
			continue
		}
		others := trackedTogether(h.jobs, o)
		switch {
		case gangSpan(others, true) < 2 || !local && !meet(others, all):
		case t.gang != 0:
			take(others, t.gang)
		case o.Start < j.Start || o.Start == j.Start && o.ID < j.ID: // since before this server was started
			take(others, wishedPort(o, 0))
		}
	}
	port := wishedPort(j, 0)
	for try := range gangPorts { // if all are taken, whichever
		at, free := wishedPort(j, try), true
		for i := range gangSpan(all, local) {
			free = free && !taken[firstGangPort+(at-firstGangPort+i)%gangPorts]
		}
		if free {
			port = at
			break
		}
	}
	if mine != nil && mine.job.Attempt == j.Attempt {
		mine.gang = port
	}
	return port
}

// leads reports whether a job is the first of those it is together with.
func leads(j *core.Job) bool {
	ref := j.Spec.More().Het
	return ref == nil || j.Spec.Run == "" || ref.Offset == 0
}

// trackedTogether is Together for a job that leads, among those that are tracked.
func trackedTogether(jobs map[core.JobID]*tracked, j *core.Job) []*core.Job {
	all := []*core.Job{j}
	if ref := j.Spec.More().Het; ref != nil && j.Spec.Run != "" {
		for k := int32(1); k < ref.Count; k++ {
			if t := jobs[ref.Lead+core.JobID(k)]; t != nil && t.job.Alloc != nil {
				all = append(all, t.job)
			}
		}
	}
	return all
}

// gangSpan is how many ports in a row the containers of jobs have.
func gangSpan(all []*core.Job, local bool) (n int) {
	if !local {
		return 1
	}
	for _, j := range all {
		n += len(j.Alloc.Nodes)
	}
	return n
}

// wishedPort is the port a job's containers would have if nobody else had any. Jobs that are neighbors in time are not
// neighbors here, and one that failed because somebody on a node had its port finds another.
func wishedPort(j *core.Job, try int) int {
	return firstGangPort + int((int64(j.ID)*61+int64(j.Attempt-1)*17+int64(try))%gangPorts)
}

// meet reports whether some jobs are on a node together with others.
func meet(a, b []*core.Job) bool {
	for _, x := range a {
		for _, y := range b {
			for i := range x.Alloc.Nodes {
				if allocOn(y, x.Alloc.Nodes[i].Node) != nil {
					return true
				}
			}
		}
	}
	return false
}

// hasWholeNodes reports whether a job has all of each of its nodes, and with them their networks: it asked for that, or
// it has all of the blocks they are split into.
func (b *launchBuilder) hasWholeNodes(j *core.Job) bool {
	if j.Spec.Shape.Exclusive {
		return true
	}
	snap := b.engine.Snapshot()
	for i := range j.Alloc.Nodes {
		na := &j.Alloc.Nodes[i]
		if n, ok := snap.Node(na.Node); !ok || n.Blocks < 1 || !j.Spec.Shape.Blocks || na.CPUs < n.Hardware.CPUs {
			return false
		}
	}
	return true
}
