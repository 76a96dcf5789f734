package hub

import (
	"context"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

// Run watches for nodes that fall silent, and for steps that nobody launches, until ctx ends. A silent node is
// unreachable, not dead: its jobs stay, unless a fence is set; then its agent has ended them after the fence, and the
// engine is told one margin later.
func (h *Hub) Run(ctx context.Context) error {
	tick := time.NewTicker(max(h.cfg.SilentAfter/8, 5*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			h.watch(ctx)
		}
	}
}

// watch tells the engine about silences that began or grew too long since the last look.
func (h *Hub) watch(ctx context.Context) {
	var tell []state.Command[state.None]
	now := time.Now()
	snap := h.engine.Snapshot()
	h.mu.Lock()
	h.requestHealthChecks(snap, now)
	for rec := range snap.Nodes() {
		if rec.Flags.Any(core.NodeUnknown | core.NodeFuture | core.Asleep) {
			continue
		}
		n := h.node(rec.Name)
		quiet := now.Sub(n.heard)
		if quiet < h.cfg.SilentAfter {
			continue
		}
		if !n.silent || !rec.Flags.Has(core.NodeSilent) {
			n.silent = true
			if !rec.Flags.Has(core.NodeSilent) {
				h.log.Warn("node is silent", "node", rec.Name, "quiet", quiet)
				tell = append(tell, &state.NodeSilence{Node: rec.Name})
			}
		}
		if due := h.behindFence(n, quiet); len(due) > 0 {
			h.log.Warn("node is fenced", "node", rec.Name, "quiet", quiet, "jobs", len(due))
			tell = append(tell, &state.Fenced{Node: rec.Name, Jobs: due})
		}
	}
	h.mu.Unlock()
	h.Abandoned.end(ctx, h.engine, h.log)
	for _, in := range tell {
		if _, err := engine.Urgent(ctx, h.engine, in); err != nil && ctx.Err() == nil {
			h.log.Warn("silence not recorded", "err", err)
			h.forget(in)
		}
	}
}

// forget lets the next look try again.
func (h *Hub) forget(in state.Input) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if in, ok := in.(*state.NodeSilence); ok {
		h.node(in.Node).silent = false
	}
}

// behindFence lists the jobs on a node that its agent has ended by now: one margin after their own fence or the
// cluster's.
func (h *Hub) behindFence(n *node, quiet time.Duration) []core.JobID {
	var due []core.JobID
	for id := range n.jobs {
		fence := h.cfg.Fence
		if own := h.jobs[id].job.Spec.More().Fence; own > 0 {
			fence = own.Duration()
		}
		if fence > 0 && quiet >= fence+h.cfg.FenceMargin {
			due = append(due, id)
		}
	}
	slices.Sort(due)
	return due
}
