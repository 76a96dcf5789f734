package hub

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/wire"
)

// handleSample takes a usage report of an agent: the last state of its units is kept in memory, what its jobs use goes
// to the sample store, and a unit that has failed or recovered is reported to the engine.
func (k *conn) handleSample(s *wire.Sample, exported []byte) {
	h, now := k.h, core.At(time.Now())
	keep, mine := k.jobSamples(s, exported, now)
	if !mine {
		return
	}
	for _, o := range keep {
		if o.unused != nil {
			k.report(o.unused, nil)
		}
		if h.cfg.Samples == nil {
			continue
		}
		if err := h.cfg.Samples.Add(o.key, o.sample); err != nil {
			h.log.Warn("sample not kept", "job", o.key.Job, "err", err)
		}
	}
	if s.Units != nil && h.rules().Sick.Act {
		k.reportUnits(s.Units)
	}
}

// jobSample is what a job used on a node.
type jobSample struct {
	key    samples.Key
	sample *core.Sample
	unused *state.GPUUnused // that ends the job; nil: nothing does
}

// jobSamples notes how the node's units do and gives what its jobs used; mine is false when the node has another
// connection.
func (k *conn) jobSamples(s *wire.Sample, exported []byte, now core.Time) (keep []jobSample, mine bool) {
	h := k.h
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node(k.who.Name)
	if n.conn != k {
		return nil, false
	}
	if s.Units != nil {
		n.units, n.exported = s.Units, exported
	}
	for _, u := range s.Jobs {
		t := h.jobs[u.Job]
		if t == nil || t.job.Attempt != u.Attempt {
			continue
		}
		if na := allocOn(t.job, k.who.Name); na != nil { // nobody tells of others' jobs
			x := &core.Sample{
				At: now, Node: k.who.Name, CPU: time.Duration(u.CPU) * time.Microsecond, Mem: core.Bytes(u.Mem),
				GPUs: unitUse(na, s.Units),
			}
			keep = append(keep, jobSample{samples.Key{Job: t.job.ID, Attempt: u.Attempt}, x, t.low.note(t.job, x)})
		}
	}
	return keep, true
}

// unitUse is how the GPUs a job has on a node are used.
func unitUse(na *core.NodeAlloc, units []core.UnitState) []core.UnitUse {
	var out []core.UnitUse
	for _, g := range na.Gres {
		for i := range units {
			if u := &units[i]; u.Name == g.Name && slices.Contains(g.Units, u.Index) {
				out = append(out, core.UnitUse{Index: u.Index, Util: u.Util, Mem: u.Used})
			}
		}
	}
	return out
}

// reportUnits tells the engine which units have failed, when that is news to it.
func (k *conn) reportUnits(units []core.UnitState) {
	var sick []core.SickUnit
	for _, u := range units {
		if u.Health == "failure" {
			sick = append(sick, core.SickUnit{Name: u.Name, Index: u.Index, Reason: u.Faults})
		}
	}
	rec, ok := k.h.engine.Snapshot().Node(k.who.Name)
	if !ok || slices.Equal(sick, rec.Hardware.Sick) {
		return
	}
	k.report(&state.UnitHealth{Node: k.who.Name, Sick: sick, Return: k.h.rules().Sick.Return}, nil)
}

// Sick says what becomes of units that have failed.
type Sick struct {
	Act    bool // they are given to nobody
	Return bool // and come back when they are well
}

// GPU is a unit of a connected node, how it does and who has it.
type GPU struct {
	Node core.NodeName
	core.UnitState
	Type string
	Job  *core.Job // nil: nobody
}

// GPUs lists the units of all connected nodes that tell of them, and what their dcgm-exporters say by node.
func (h *Hub) GPUs() (list []GPU, exported map[core.NodeName][]byte) {
	snap := h.engine.Snapshot()
	exported = map[core.NodeName][]byte{}
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.nodes {
		if n.conn == nil || len(n.units) == 0 {
			continue
		}
		if len(n.exported) > 0 {
			exported[name] = n.exported
		}
		rec, _ := snap.Node(name)
		for _, u := range n.units {
			g := GPU{Node: name, UnitState: u}
			if rec != nil {
				for _, d := range rec.Hardware.Units {
					if d.Name == u.Name && d.Index == u.Index {
						g.Type = d.Type
					}
				}
			}
			for id := range n.jobs {
				if j := h.jobs[id].job; !over(j) && holdsUnit(j, name, &u) {
					g.Job = j
				}
			}
			list = append(list, g)
		}
	}
	return list, exported
}

func holdsUnit(j *core.Job, node core.NodeName, u *core.UnitState) bool {
	na := allocOn(j, node)
	return na != nil && slices.ContainsFunc(na.Gres, func(g core.GresAlloc) bool {
		return g.Name == u.Name && slices.Contains(g.Units, u.Index)
	})
}
