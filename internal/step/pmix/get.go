package pmix

import (
	"slices"
	"time"
)

// get is a task that waits for what another puts.
type get struct {
	waiter
	rank  int32
	key   string
	timer *time.Timer // until it is answered with what there is; nil: it waits until the step ends
}

func (g *get) stop() {
	if g.timer != nil {
		g.timer.Stop()
	}
}

// get answers with everything that a task put, once the wanted key is among it.
func (c *conn) get(tag uint32, r *reader) error {
	r.items(1)
	nspace := r.string()
	r.items(1)
	rank := r.uint32()
	immediate, limit := false, time.Duration(0)
	for _, x := range r.infos() {
		switch x.key {
		case "pmix.immediate":
			immediate = x.is
		case "pmix.timeout":
			limit = time.Duration(max(0, min(x.number, 1<<31))) * time.Second
		}
	}
	if r.err != nil {
		return r.err
	}
	key := ""
	if len(r.b) > 0 {
		r.items(1)
		key = r.string()
	}
	if r.err != nil {
		return r.err
	}
	if len(key) > maxKey {
		c.status(tag, statusBadParam)
		return nil
	}
	at, known := c.n.where[int32(rank)]
	if nspace != c.n.cfg.Namespace || rank >= rankWildcard || !known {
		c.status(tag, statusNotFound) // it has been told all that is known of its step
		return nil
	}
	n := c.n
	n.mu.Lock()
	s := n.state(int32(rank))
	if s.has(key, at == n.cfg.Here) || immediate {
		n.mu.Unlock()
		n.answer(c, tag, int32(rank), key)
		return nil
	}
	g := &get{waiter: waiter{c, tag}, rank: int32(rank), key: key}
	if limit == 0 && s.committed && at == n.cfg.Here {
		limit = n.cfg.Patience
	}
	if limit > 0 {
		g.timer = time.AfterFunc(limit, func() { n.giveUp(g) })
	}
	n.gets = append(n.gets, g)
	n.mu.Unlock()
	if at != n.cfg.Here {
		n.question(int32(rank), key)
	}
	return nil
}

// has reports whether a task has put a key. The lock is held.
func (s *rankState) has(key string, near bool) bool {
	if !s.committed {
		return false
	}
	if key == "" {
		return true
	}
	at := 0
	if near {
		at = 1
	}
	if s.keys[at] == nil { // read once: many may wait for it
		s.keys[at], s.vague[at] = keysOf(s.dialect, s.side(near))
	}
	return s.keys[at][key] || s.vague[at]
}

func (s *rankState) side(near bool) []byte {
	if near {
		return s.near
	}
	return s.far
}

// answer gives a task what another has put.
func (n *Node) answer(c *conn, tag uint32, rank int32, key string) {
	near := n.where[rank] == n.cfg.Here
	n.mu.Lock()
	s := n.state(rank)
	found, packed := s.has(key, near) && s.dialect == c.dialect, s.side(near)
	n.mu.Unlock()
	if !found {
		c.status(tag, statusNotFound)
		return
	}
	one := &writer{dialect: c.dialect}
	one.one().proc(n.cfg.Namespace, uint32(rank))
	w := &writer{dialect: c.dialect}
	w.one().int32(statusOK)
	w.one().size(len(one.b) + len(packed))
	c.reply(tag, append(w.b, one.b...), packed) // not a copy for each who asks
}

// giveUp answers a call that has waited long enough.
func (n *Node) giveUp(g *get) {
	if n.drop(g) {
		n.answer(g.c, g.tag, g.rank, g.key)
	}
}

// drop takes a call out of those that wait, if it is one.
func (n *Node) drop(g *get) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	i := slices.Index(n.gets, g)
	if i < 0 {
		return false
	}
	g.stop()
	n.gets = slices.Delete(n.gets, i, i+1)
	return true
}

// settle answers those who wait for a task, after it has committed or was told of.
func (n *Node) settle(rank int32) {
	near := n.where[rank] == n.cfg.Here
	n.mu.Lock()
	s := n.state(rank)
	var ready []*get
	for _, g := range n.gets {
		switch {
		case g.rank != rank:
		case s.has(g.key, near):
			ready = append(ready, g)
		case near && g.timer == nil && s.committed:
			g.timer = time.AfterFunc(n.cfg.Patience, func() { n.giveUp(g) })
		}
	}
	n.mu.Unlock()
	for _, g := range ready {
		n.giveUp(g)
	}
	if near {
		n.tellAsked(rank)
	}
}
