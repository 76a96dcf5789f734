package hub

import (
	"errors"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/wire"
)

// Rules are the settings that may change while the server runs.
type Rules struct {
	Settings wire.NodeSettings // told to nodes
	Sick     Sick
	Health   Health
	// KeepLimits are the resource limits of the submitting shell that jobs do not get: names, or ALL.
	KeepLimits []string
	Volumes    []storage.Class // kinds of network volumes
}

func (h *Hub) rules() *Rules { return h.live.Load() }

// welcome is what every agent is told, on a stream of a version.
func (h *Hub) welcome(protocol int) *wire.Welcome {
	w := &wire.Welcome{
		Protocol: protocol, Version: h.cfg.Version, Cluster: h.cfg.Cluster, Heartbeat: h.cfg.Heartbeat,
		Fence: h.cfg.Fence, Servers: h.cfg.Servers, Settings: h.rules().Settings,
	}
	if h.cfg.Certs != nil {
		w.Certs = h.cfg.Certs()
	}
	return w
}

// Tell has all nodes hear the cluster's settings again.
func (h *Hub) Tell() { h.SetRules(*h.live.Load()) }

// SetRules has new settings hold, and tells the nodes. A health program that is new is run at once.
func (h *Hub) SetRules(r Rules) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.live.Swap(&r)
	for _, n := range h.nodes {
		if n.conn == nil {
			continue
		}
		w := h.welcome(n.conn.protocol)
		for id := range n.jobs { // what is not said of a job's own fence is forgotten
			if f := h.jobs[id].job.Spec.More().Fence; f > 0 {
				w.Fences = append(w.Fences, wire.JobFence{Job: id, Fence: f.Duration()})
			}
		}
		n.conn.queue(order{typ: wire.TypeWelcome, header: w})
		if p := r.Settings.Health.Program; p != "" && p != old.Settings.Health.Program {
			n.conn.queue(order{typ: wire.TypeCheck})
		}
		if r.Health.Interval != old.Health.Interval || r.Health.Cycle != old.Health.Cycle {
			n.checked = 0 // slots are counted otherwise
		}
	}
}

// reconnectWoken makes a node register again that the engine considers waking up but whose agent never slept: the node
// is up when it has registered. h.mu is held.
func (h *Hub) reconnectWoken(rec *core.Node) {
	n := h.nodes[rec.Name]
	if n == nil || n.conn == nil || !rec.Flags.Has(core.NodePoweringUp) || rec.Flags.Has(core.NodePoweringDown) {
		return
	}
	n.conn.disconnect(errors.New("the node is woken and did not sleep: its agent is to connect again"))
}
