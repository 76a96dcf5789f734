package state

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/core/grammar"
)

// shapeNumbers are the words of submit that are numbers of the rare part of a shape.
var shapeNumbers = map[string]func(*core.ShapeMore) *int32{
	"persocket":  func(m *core.ShapeMore) *int32 { return &m.TasksPerSocket },
	"percore":    func(m *core.ShapeMore) *int32 { return &m.TasksPerCore },
	"pergpu":     func(m *core.ShapeMore) *int32 { return &m.TasksPerGPU },
	"cpuspergpu": func(m *core.ShapeMore) *int32 { return &m.CPUsPerGPU },
	"sockets":    func(m *core.ShapeMore) *int32 { return &m.Sockets },
	"cores":      func(m *core.ShapeMore) *int32 { return &m.Cores },
	"threads":    func(m *core.ShapeMore) *int32 { return &m.Threads },
	"corespec":   func(m *core.ShapeMore) *int32 { return &m.CoreSpec },
	"threadspec": func(m *core.ShapeMore) *int32 { return &m.ThreadSpec },
}

// shapeGPUs are those that are GPUs: 2, a100:2 or a100:2,h100:1.
var shapeGPUs = map[string]func(*core.ShapeMore) *[]core.Gres{
	"gpus":          func(m *core.ShapeMore) *[]core.Gres { return &m.GPUs },
	"gpuspertask":   func(m *core.ShapeMore) *[]core.Gres { return &m.GPUsPerTask },
	"gpuspersocket": func(m *core.ShapeMore) *[]core.Gres { return &m.GPUsPerSocket },
}

// shapeWord reports whether a word of submit is about the shape.
func shapeWord(k string) bool {
	return shapeNumbers[k] != nil || shapeGPUs[k] != nil || k == "mempergpu" || k == "onethread" || k == "share" ||
		k == "dist"
}

// shapes reads these words and reports whether any needs Extra.
func (s *script) shapes(b *coretest.JobBuilder, x *core.Extra, o args) bool {
	m, any := core.ShapeMore{OneThread: o["onethread"] != "", OverSubscribe: o["share"] != ""},
		o["onethread"]+o["share"] != ""
	for k, v := range o {
		switch {
		case shapeNumbers[k] != nil:
			*shapeNumbers[k](&m), any = int32(s.num(v)), true
		case shapeGPUs[k] != nil:
			list, err := grammar.ParseGPUs(v)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, g := range list {
				*shapeGPUs[k](&m) = append(*shapeGPUs[k](&m), core.Gres(g))
			}
			any = true
		case k == "mempergpu":
			m.MemPerGPU, any = s.mem(v), true
		}
	}
	if any {
		b.Set(func(sp *core.Spec) {
			if w := sp.Shape.More; w != nil {
				m.SpreadJob, m.UseMinNodes = w.SpreadJob, w.UseMinNodes
			}
			sp.Shape.More = &m
		})
	}
	x.Distribution = o["dist"]
	return x.Distribution != ""
}

// hardware reads what a line about nodes says of their insides: grid=SOCKETS:CORES:THREADS and
// units=INDEX@SOCKET/LINKS,… of its GPUs, in the order of their types.
func (s *script) hardware(h *core.Hardware, o args) {
	if v := o["grid"]; v != "" {
		if _, err := fmt.Sscanf(v, "%d:%d:%d", &h.Sockets, &h.Cores, &h.Threads); err != nil {
			s.t.Fatalf("grid=%s: %v", v, err)
		}
		h.CPUs = h.Sockets * h.Cores * h.Threads
	}
	if v := o["units"]; v != "" {
		h.Units = nil
		var types []string
		for _, g := range h.Gres {
			for range g.Count {
				types = append(types, g.Type)
			}
		}
		for i, word := range strings.Split(v, ",") {
			u := core.Unit{Name: "gpu", Type: types[i]}
			if _, err := fmt.Sscanf(word, "%d@%d/%d", &u.Index, &u.Socket, &u.Links); err != nil {
				s.t.Fatalf("units=%s: %v", v, err)
			}
			h.Units = append(h.Units, u)
		}
	}
}

// bounds reads what a line about a partition says of sharing.
func (s *script) bounds(p *core.Partition, o args) {
	p.OverSubscribe = o["oversubscribe"]
	if v := o["maxcpus"]; v != "" {
		p.MaxCPUsPerNode = int32(s.num(v))
	}
	if v := o["maxmempercpu"]; v != "" {
		p.MaxMemPerCPU = s.mem(v)
	}
}

// end JOB…: the jobs end well, and all their nodes are clean of them.
func (s *script) end(p []string, _ args) error {
	for _, word := range p {
		j := s.seen[s.id(word)]
		if j == nil || j.Alloc == nil {
			return core.Errorf(core.Conflict, "job %s does not run", word)
		}
		for i := range j.Alloc.Nodes {
			var in Input = &NodeDone{Node: j.Alloc.Nodes[i].Node, Job: j.ID, Attempt: j.Attempt}
			if i == 0 {
				in = &Exited{Job: j.ID, Step: "batch", Attempt: j.Attempt, JobDone: true, Node: j.Alloc.Nodes[0].Node}
			}
			if _, err := s.w.do(in); err != nil {
				return err
			}
		}
	}
	return nil
}
