package hub

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/wire"
)

// handleProgress keeps what an agent reports about a launch that does not run yet. It is shown and decides nothing, so
// it stays in memory.
func (k *conn) handleProgress(d wire.Doing) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	t := k.h.jobs[d.Key.Job]
	if t != nil && t.job.Attempt == d.Key.Attempt && allocOn(t.job, k.who.Name) != nil {
		t.doing = slices.DeleteFunc(slices.Clone(t.doing), func(p Progress) bool { return p.Node == k.who.Name })
		if d.Text != "" {
			t.doing = append(t.doing, Progress{Node: k.who.Name, Text: d.Text, Pull: d.Pull})
		}
		if d.Ports != nil {
			t.ports = slices.DeleteFunc(slices.Clone(t.ports), func(p core.Published) bool { return p.Node == k.who.Name })
			for _, p := range d.Ports {
				p.Node = k.who.Name
				t.ports = append(t.ports, p)
			}
		}
	}
}

// dropping keeps the limit because of which a job's node drops its output.
func (h *Hub) dropping(key logstore.Key, limit string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.jobs[key.Job]; t != nil && t.job.Attempt == key.Attempt {
		t.drops = limit
	}
}

// Dropping returns which limit keeps output of a job from being kept, by its node or by the server; empty: none.
func (h *Hub) Dropping(j *core.Job) string {
	h.mu.Lock()
	t := h.jobs[j.ID]
	h.mu.Unlock()
	if t != nil && t.job.Attempt == j.Attempt && t.drops != "" {
		return t.drops
	}
	if j.Attempt == 0 {
		return ""
	}
	return h.logs.Dropping(logstore.Key{Job: j.ID, Attempt: j.Attempt})
}

// Ports returns where the ports of a job's containers are found.
func (h *Hub) Ports(id core.JobID) []core.Published {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.jobs[id]; t != nil {
		return t.ports
	}
	return nil
}

// Progress is what is done on a node about a job that does not run there yet.
type Progress struct {
	Node core.NodeName
	Text string
	Pull *wire.Pull // of its image; nil: that is not what is done
}

// Progress returns what is done about a job on its nodes before it runs there, the newest last; nodes where it runs are
// left out.
func (h *Hub) Progress(id core.JobID) []Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.jobs[id]; t != nil {
		return t.doing
	}
	return nil
}
