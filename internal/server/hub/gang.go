package hub

import (
	"context"
	"fmt"
	"net"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// A job in containers has one on each of its nodes. Where its script runs that is the batch step's; on the other nodes, and
// for a job without a script, a launch of its own holds the container for what joins (extern).

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

// Where the SSH servers of the containers of one job are found: below the ports that systems give to whoever asks for any.
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
	g := &wire.Gang{Rank: rank, Each: j.Spec.Run != "", Seed: h.cfg.Secret(id)}
	snap := h.engine.Snapshot()
	// Jobs that are neighbours in time are not neighbours here, and one that failed because somebody had its port finds another.
	port := int((int64(j.ID)*61 + int64(j.Attempt-1)*17) % gangPorts)
	for i := range nodes {
		p := wire.Peer{Node: string(nodes[i].Node), Addr: string(nodes[i].Node), Port: firstGangPort + port, Slots: nodes[i].GPUs()}
		if !g.Each {
			p.Slots = int(nodes[i].Tasks)
		}
		if n, ok := snap.Node(nodes[i].Node); ok && n.Host.Addr != "" {
			p.Addr = n.Host.Addr
		}
		if ip := net.ParseIP(p.Addr); ip != nil && ip.IsLoopback() { // nodes of one machine
			p.Port = firstGangPort + (port+i)%gangPorts
		}
		g.Peers = append(g.Peers, p)
	}
	return g
}

// whole tells whether a job has all of each of its nodes, and with them their networks: it asked for that, or it has all of the
// blocks they are split into.
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
