package hub

import (
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/wire"
)

// Health says when nodes are looked at and what follows. What they look at is in the settings they are told.
type Health struct {
	Interval time.Duration // between two runs of the health program; 0: only when an agent connects
	States   []string      // of nodes on which it is run; empty: any
	Cycle    bool          // the nodes take turns throughout the interval
	Return   bool          // what was drained for a fault comes back without it
	MaxSkew  time.Duration // a clock that is further off drains; 0: it does not
}

// turns is into how many parts the nodes are divided when they take turns.
const turns = 64

// slot counts the intervals that have passed for a node since the server began. Nodes that do not take turns have the
// same.
func (c *Health) slot(id int64, began, now time.Time) int64 {
	if c.Interval <= 0 {
		return 0
	}
	since := now.Sub(began)
	if c.Cycle {
		since += c.Interval * time.Duration(id%turns) / turns
	}
	return int64(since / c.Interval)
}

// requestHealthChecks asks the connected nodes whose turn it is to run their health program. h.mu is held.
func (h *Hub) requestHealthChecks(snap *state.Snapshot, now time.Time) {
	if h.rules().Settings.Health.Program == "" || h.rules().Health.Interval <= 0 {
		return
	}
	var uses map[core.NodeName]*state.NodeUse
	for rec := range snap.Nodes() {
		n, slot := h.nodes[rec.Name], h.rules().Health.slot(rec.ID, h.began, now)
		if n == nil || n.conn == nil || n.checked >= slot {
			continue
		}
		if uses == nil {
			uses = snap.Uses()
		}
		if h.rules().Health.checks(rec, uses[rec.Name]) {
			n.checked = slot
			n.conn.queue(order{typ: wire.TypeCheck})
		}
	}
}

// checks reports whether the health program is run on nodes in the state that a node is in.
func (c *Health) checks(rec *core.Node, use *state.NodeUse) bool {
	if len(c.States) == 0 {
		return true
	}
	is := "idle"
	switch {
	case use != nil && use.CPUs >= rec.Hardware.CPUs && use.CPUs > 0:
		is = "alloc"
	case use != nil && use.CPUs > 0:
		is = "mixed"
	}
	return slices.ContainsFunc(c.States, func(s string) bool {
		return s == "any" || s == is || s == "nondrained_idle" && is == "idle" &&
			!rec.Flags.Any(core.NodeDrain|core.NodeDown|core.NodeFailFlag)
	})
}

// sendPending asks of a node that has just connected what it may have missed.
func (k *conn) sendPending() {
	h := k.h
	rec, ok := h.engine.Snapshot().Node(k.who.Name)
	if !ok {
		return
	}
	if h.rules().Settings.Health.Program != "" {
		h.mu.Lock()
		h.node(k.who.Name).checked = h.rules().Health.slot(rec.ID, h.began, time.Now())
		h.mu.Unlock()
		k.queue(order{typ: wire.TypeCheck})
	}
	if rec.Flags.Has(core.NodeRebooting) {
		k.queue(order{typ: wire.TypeReboot, header: wire.Reboot{By: rec.Due}})
	}
}

// requestReboot tells nodes that they are to restart. h.mu is held.
func (h *Hub) requestReboot(rec *core.Node) {
	if n := h.nodes[rec.Name]; rec.Flags.Has(core.NodeRebooting) && n != nil && n.conn != nil {
		n.conn.queue(order{typ: wire.TypeReboot, header: wire.Reboot{By: rec.Due}})
	}
}

// handleHealth records the faults that a node reports. All of them are shown; those that drain the node are passed to
// the engine when they have changed.
func (k *conn) handleHealth(m *wire.Health) {
	h := k.h
	h.mu.Lock()
	n := h.node(k.who.Name)
	if n.conn != k {
		h.mu.Unlock()
		return
	}
	faults := m.Faults
	if most := h.rules().Health.MaxSkew; most > 0 && n.skew.Abs() > most {
		faults = append(faults, core.NodeFault{
			Check: "skew", Text: fmt.Sprintf("its clock is off by more than %s", most),
			Drain: true,
		})
	}
	n.faults = faults
	h.mu.Unlock()
	drain := slices.DeleteFunc(slices.Clone(faults), func(f core.NodeFault) bool { return !f.Drain })
	if rec, ok := h.engine.Snapshot().Node(k.who.Name); ok && !slices.Equal(drain, rec.Faults) {
		k.report(&state.NodeHealth{Node: k.who.Name, Faults: drain, Return: h.rules().Health.Return}, nil)
	}
}
