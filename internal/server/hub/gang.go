package hub

import (
	"context"
	"fmt"
	"net"

	"bireme.dev/bireme/internal/core"
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

// launch makes the launch that a job has on a node by itself.
func (h *Hub) launch(ctx context.Context, j *core.Job, node core.NodeName) (*wire.Launch, error) {
	rank := 0
	for i := range j.Alloc.Nodes {
		if j.Alloc.Nodes[i].Node == node {
			rank = i
		}
	}
	l, err := h.batchLaunch(ctx, j, rank)
	if err != nil || holder(j, node) == wire.BatchStep {
		return l, err
	}
	l.Key.Step, l.EndsJob, l.Container.Hold = wire.ExternStep, false, true
	l.Stdio = wire.Stdio{Names: l.Stdio.Names}
	l.Time.WarnSignal, l.Time.WarnBefore = 0, 0
	return l, nil
}

// Where the SSH servers of the containers of one job are found: below the ports that systems give to whoever asks for
// any.
const (
	firstGangPort = 24000
	gangPorts     = 8000
)

// gangOf is what the container of a job on its rank-th node knows of the others; nil: there are none.
func (h *Hub) gangOf(j *core.Job, rank int) *wire.Gang {
	nodes := j.Alloc.Nodes
	if len(nodes) < 2 {
		return nil
	}
	id := fmt.Sprintf("containers of job %d.%d", j.ID, j.Attempt)
	g := &wire.Gang{Rank: rank, Each: j.Spec.Run != "", Seed: h.cfg.Secret(id), Patience: h.cfg.ContainerWait}
	if r := j.Spec.Rules(); r != nil {
		g.Order, g.MasterDone = r.StartupOrder, r.StopCriteria == core.StopMasterDone
	}
	snap := h.engine.Snapshot()
	local := false // nodes of one machine
	for i := range nodes {
		if n, ok := snap.Node(nodes[i].Node); ok {
			ip := net.ParseIP(n.Host.Addr)
			local = local || ip != nil && ip.IsLoopback()
		}
	}
	port := h.gangPort(j, local)
	for i := range nodes {
		p := wire.Peer{Node: string(nodes[i].Node), Addr: string(nodes[i].Node), Port: port, Slots: nodes[i].GPUs()}
		if !g.Each {
			p.Slots = int(nodes[i].Tasks)
		}
		if n, ok := snap.Node(nodes[i].Node); ok && n.Host.Addr != "" {
			p.Addr = n.Host.Addr
		}
		if local {
			p.Port = firstGangPort + (port-firstGangPort+i)%gangPorts
		}
		g.Peers = append(g.Peers, p)
	}
	return g
}

// gangPort is the port of a job's containers, the first of them where its nodes are one machine: one that no other
// job on its nodes has. It stays while the job's attempt does, for its containers are launched one by one.
func (h *Hub) gangPort(j *core.Job, local bool) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	mine := h.jobs[j.ID]
	if mine != nil && mine.gang != 0 && mine.job.Attempt == j.Attempt {
		return mine.gang
	}
	taken := map[int]bool{}
	take := func(o *core.Job, port int) {
		for i := range gangSpan(o, local) {
			taken[firstGangPort+(port-firstGangPort+i)%gangPorts] = true
		}
	}
	for id, t := range h.jobs {
		o := t.job
		switch {
		case id == j.ID || o.Alloc == nil || len(o.Alloc.Nodes) < 2 || o.Spec.More().Container == nil ||
			!local && !meet(o, j):
		case t.gang != 0:
			take(o, t.gang)
		case o.Start < j.Start || o.Start == j.Start && o.ID < j.ID: // since before this server was started
			take(o, wishedPort(o, 0))
		}
	}
	port := wishedPort(j, 0)
	for try := range gangPorts { // if all are taken, whichever
		at, free := wishedPort(j, try), true
		for i := range gangSpan(j, local) {
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

// gangSpan is how many ports in a row a job's containers have.
func gangSpan(j *core.Job, local bool) int {
	if local {
		return len(j.Alloc.Nodes)
	}
	return 1
}

// wishedPort is the port a job's containers would have if nobody else had any. Jobs that are neighbours in time are not
// neighbours here, and one that failed because somebody on a node had its port finds another.
func wishedPort(j *core.Job, try int) int {
	return firstGangPort + int((int64(j.ID)*61+int64(j.Attempt-1)*17+int64(try))%gangPorts)
}

// meet reports whether two jobs are on a node together.
func meet(a, b *core.Job) bool {
	for i := range a.Alloc.Nodes {
		if allocOn(b, a.Alloc.Nodes[i].Node) != nil {
			return true
		}
	}
	return false
}

// whole reports whether a job has all of each of its nodes, and with them their networks: it asked for that, or it has
// all of the blocks they are split into.
func (h *Hub) whole(j *core.Job) bool {
	if j.Spec.Shape.Exclusive {
		return true
	}
	snap := h.engine.Snapshot()
	for i := range j.Alloc.Nodes {
		na := &j.Alloc.Nodes[i]
		if n, ok := snap.Node(na.Node); !ok || n.Blocks < 1 || !j.Spec.Shape.Blocks || na.CPUs < n.Hardware.CPUs {
			return false
		}
	}
	return true
}
