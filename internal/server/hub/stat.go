package hub

import (
	"context"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Stats are questions to nodes about what a step uses that wait for their answers.
type Stats struct {
	h *Hub

	mu   sync.Mutex
	last uint64
	open map[uint64]*question
}

type question struct {
	node   core.NodeName
	answer chan *wire.Usage // has room for it
}

func (s *Stats) ask(node core.NodeName) (ref uint64, q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = map[uint64]*question{}
	}
	s.last++
	q = &question{node: node, answer: make(chan *wire.Usage, 1)}
	s.open[s.last] = q
	return s.last, q
}

func (s *Stats) forget(ref uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, ref)
}

// answer delivers what a node says. Nobody answers for another node.
func (s *Stats) answer(node core.NodeName, u *wire.Usage) {
	s.mu.Lock()
	q := s.open[u.Ref]
	if q == nil || q.node != node {
		s.mu.Unlock()
		return
	}
	delete(s.open, u.Ref)
	s.mu.Unlock()
	q.answer <- u
}

// Of asks the nodes of a job what one of its steps uses there, and waits for them until ctx ends. Nodes that are not
// connected, that do not answer or do not have the step are left out.
func (s *Stats) Of(ctx context.Context, j *core.Job, step string) map[core.NodeName]*wire.Usage {
	type sent struct {
		ref uint64
		q   *question
	}
	var list []sent
	h := s.h
	h.mu.Lock()
	for i := range j.Alloc.Nodes {
		name := j.Alloc.Nodes[i].Node
		if n := h.nodes[name]; n != nil && n.conn != nil && !j.Alloc.Nodes[i].Done {
			ref, q := s.ask(name)
			n.conn.queue(order{typ: wire.TypeStat, header: &wire.Stat{
				Ref: ref, Job: j.ID, Attempt: j.Attempt, Step: step, Tasks: true,
			}})
			list = append(list, sent{ref, q})
		}
	}
	h.mu.Unlock()
	out := map[core.NodeName]*wire.Usage{}
	for _, asked := range list {
		select {
		case u := <-asked.q.answer:
			if u.Found {
				out[asked.q.node] = u
			}
		case <-ctx.Done():
			s.forget(asked.ref)
		}
	}
	return out
}
