package pmix

import (
	"encoding/binary"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Message is what nodes of a step tell each other by way of srun, which does one of two things with it, by the first
// word of Op:
//
//	fence/SET/N    gathered: when Nodes nodes have sent it, all are sent their payloads, one after the other.
//	               With Err all are sent that at once.
//	ask/RANK       passed on to all: the node that has the task answers, when it has committed Payload, a key.
//	tell/RANK      passed on to all: the answer. Payload is as of a fence.
//
// A message may come twice.
type Message struct {
	Op      string
	Nodes   int
	Err     string
	Payload []byte
}

// An entry of a payload is what one task put for other nodes: rank, dialect, length, bytes.
const entryHead = 9

func appendEntry(b []byte, rank int32, s *rankState) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(rank))
	if s.dialect.flex {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.far)))
	return append(b, s.far...)
}

// collected is what tasks of this node have put for others. The lock is held.
func (n *Node) collected(ranks []int32) []byte {
	var b []byte
	for _, r := range ranks {
		if s := n.state(r); s.committed {
			b = appendEntry(b, r, s)
		}
	}
	return b
}

// Deliver takes a message of another node, or the answer of all.
func (n *Node) Deliver(m Message) {
	kind, rest, _ := strings.Cut(m.Op, "/")
	switch kind {
	case "fence":
		n.fenceAnswered(m)
	case "ask":
		if rank, err := strconv.Atoi(rest); err == nil {
			n.asked(int32(rank), string(m.Payload))
		}
	case "tell":
		if ranks, err := n.take(m.Payload); err == nil {
			for _, r := range ranks {
				n.told(r)
			}
		}
	}
}

func (n *Node) fenceAnswered(m Message) {
	n.mu.Lock()
	var f *fence
	for _, o := range n.fences {
		if o.op == m.Op {
			f = o
		}
	}
	n.mu.Unlock()
	if f == nil { // it has been answered before
		return
	}
	if m.Err != "" {
		n.endFence(f, statusLost)
		return
	}
	ranks, err := n.take(m.Payload)
	if err != nil {
		n.endFence(f, statusError)
		return
	}
	n.endFence(f, statusOK)
	for _, r := range ranks {
		n.settle(r)
	}
}

// take keeps what tasks of other nodes put, and tells which.
func (n *Node) take(b []byte) ([]int32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ranks []int32
	for len(b) > 0 {
		if len(b) < entryHead {
			return nil, errShort
		}
		rank, flex, size := int32(binary.BigEndian.Uint32(b)), b[4] == 1, binary.BigEndian.Uint32(b[5:])
		if b = b[entryHead:]; uint64(size) > uint64(len(b)) {
			return nil, errShort
		}
		at, known := n.where[rank]
		if !known {
			return nil, errors.New("a task that is not of this step")
		}
		if at != n.cfg.Here {
			if err := n.keep(rank, dialect{flex: flex}, nil, b[:size]); err != nil {
				return nil, err
			}
			ranks = append(ranks, rank)
		}
		b = b[size:]
	}
	return ranks, nil
}

// ask is a question for a task of another node that is not answered yet.
type ask struct{ answered chan struct{} }

// question asks the node of a task for what it put.
func (n *Node) question(rank int32, key string) {
	n.mu.Lock()
	if n.asks[rank] != nil { // the answer has everything; who still misses something asks again
		n.mu.Unlock()
		return
	}
	a := &ask{answered: make(chan struct{})}
	n.asks[rank] = a
	n.mu.Unlock()
	go n.repeat(a.answered, Message{Op: "ask/" + strconv.Itoa(int(rank)), Payload: []byte(key)})
}

// told ends a question. Those who wait for a key that is not in the answer will not get it: the other node has waited.
func (n *Node) told(rank int32) {
	n.mu.Lock()
	if a := n.asks[rank]; a != nil {
		close(a.answered)
		delete(n.asks, rank)
	}
	var waiting []*get
	for _, g := range n.gets {
		if g.rank == rank {
			waiting = append(waiting, g)
		}
	}
	n.mu.Unlock()
	for _, g := range waiting {
		n.giveUp(g)
	}
}

// asked answers another node, at once or when the task has committed the key.
func (n *Node) asked(rank int32, key string) {
	if at, known := n.where[rank]; !known || at != n.cfg.Here || len(key) > maxKey {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.state(rank)
	if s.has(key, false) {
		n.tell(rank, s)
		return
	}
	if n.wanted == nil {
		n.wanted = map[int32]string{}
	}
	_, already := n.wanted[rank]
	n.wanted[rank] = key
	if s.committed && !already {
		time.AfterFunc(n.cfg.Patience, func() { n.tellAnyway(rank) })
	}
}

// tell answers other nodes. The lock is held.
func (n *Node) tell(rank int32, s *rankState) {
	delete(n.wanted, rank)
	m := Message{Op: "tell/" + strconv.Itoa(int(rank)), Payload: appendEntry(nil, rank, s)}
	go n.cfg.Send(m)
}

// tellAsked answers other nodes that wait for a task that has just committed.
func (n *Node) tellAsked(rank int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	key, wanted := n.wanted[rank]
	if s := n.state(rank); wanted && s.has(key, false) {
		n.tell(rank, s)
	} else if wanted {
		time.AfterFunc(n.cfg.Patience, func() { n.tellAnyway(rank) })
	}
}

func (n *Node) tellAnyway(rank int32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, wanted := n.wanted[rank]; wanted && !n.closed {
		n.tell(rank, n.state(rank))
	}
}
