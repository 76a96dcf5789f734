package srun

import (
	"encoding/json"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// maxHeld is how many frames wait for nodes before whoever reads input is held up.
const maxHeld = 64

// intake is what a link has for its nodes' standard input. A frame is kept until all nodes have it: an agent or the
// server between may end with it in their hands.
type intake struct {
	order sync.Mutex // held from where a frame gets its number until it is sent; taken before the link's
	// The rest is under the link's lock.
	seq  int64
	kept []frame
	fed  map[core.NodeName]int64 // the last frame that each has; not there: its agent does not tell
}

// number is that of a frame of input.
func (f *frame) number() int64 { return f.header.(wire.IOHeader).Seq }

// feed numbers a frame of input and sends it to all nodes.
func (l *link) feed(f frame) {
	h, ok := f.header.(wire.IOHeader)
	if raw, is := f.header.(json.RawMessage); is {
		ok = json.Unmarshal(raw, &h) == nil
	}
	if !ok {
		return // no input of ours, nor of one who watches
	}
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	l.seq++
	h.Seq = l.seq
	f.header = h
	l.kept = append(l.kept, f)
	l.trim()
	var to []*wire.Conn
	far := false
	for _, c := range l.nodes {
		if c != nil {
			to = append(to, c)
		} else {
			far = true
		}
	}
	if far && !l.away {
		to = append(to, l.hub)
	}
	l.mu.Unlock()
	for _, c := range to {
		_ = c.Send(f.t, f.header, f.payload) // whoever comes in its place gets what it does not have
	}
}

// inputAt takes a node's word on what it has. One that comes by the server is not heard directly any more, though
// nothing else shows of that yet.
func (l *link) inputAt(at wire.InputAt, near bool) {
	l.mu.Lock()
	old, left := l.nodes[at.Node]
	if !left {
		l.mu.Unlock()
		return
	}
	l.fed[at.Node] = max(l.fed[at.Node], at.Seq)
	l.trim()
	l.mu.Unlock()
	switch {
	case at.Again && !near && old != nil:
		l.leave(at.Node, old)
		_ = old.Close()
	case at.Again:
		l.refeed(at.Node)
	}
}

// refeed sends a node that came again what it does not have; readers must not wait for that.
func (l *link) refeed(node core.NodeName) {
	l.mu.Lock()
	some := len(l.kept) > 0
	l.mu.Unlock()
	if some {
		go l.sendAgain(node) // ends with the connection
	}
}

// sendAgain sends a node what it does not have. By the server others hear it too, and drop it.
func (l *link) sendAgain(node core.NodeName) {
	l.order.Lock()
	defer l.order.Unlock()
	l.mu.Lock()
	c, left := l.nodes[node]
	var list []frame
	for _, f := range l.kept {
		if f.number() > l.fed[node] {
			list = append(list, f)
		}
	}
	if c == nil {
		c = l.hub
	}
	l.mu.Unlock()
	for _, f := range list {
		if !left || c.Send(f.t, f.header, f.payload) != nil {
			return
		}
	}
}

// trim lets go of what all nodes have. The link's lock is held.
func (l *link) trim() {
	least := l.seq
	for _, at := range l.fed {
		least = min(least, at)
	}
	for len(l.kept) > 0 && l.kept[0].number() <= least {
		l.kept = l.kept[1:]
	}
	l.moved.Broadcast()
}

// room waits until not too much is waiting, or the link is closed.
func (l *link) room() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.kept)+len(l.queue) >= maxHeld && !l.closed {
		l.moved.Wait()
	}
}
