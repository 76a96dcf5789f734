package pmix

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"
	"time"
)

// fence is a set of tasks that wait for each other.
type fence struct {
	op      string  // its name among the nodes
	set     string  // whom it is of
	members []int32 // those of this node, by rank
	nodes   int     // how many have members
	collect bool
	waiting map[int32]waiter
	sent    bool
	done    chan struct{} // closed when it is over
	over    bool
	held    int // bytes of what was sent
}

// waiter is a call that is not answered yet.
type waiter struct {
	c   *conn
	tag uint32
}

// repeatAfter is after how long a node tells its part again: a message may be lost with the agent that carried it.
const repeatAfter = 5 * time.Second

// fence joins a task to a fence.
func (c *conn) fence(tag uint32, r *reader) error {
	ranks, err := c.members(r)
	if errors.Is(err, errOtherJob) {
		c.status(tag, statusNotSupported)
		return nil
	}
	if err != nil {
		return err
	}
	collect := false
	for _, x := range r.infos() {
		collect = collect || x.key == "pmix.collect" && x.is
	}
	if r.err != nil {
		return r.err
	}
	if ranks != nil && !slices.Contains(ranks, c.rank) {
		c.status(tag, statusBadParam)
		return nil
	}
	n := c.n
	n.mu.Lock()
	f, err := n.fenceOf(setName(ranks), ranks, c.rank)
	if err != nil {
		n.mu.Unlock()
		return err
	}
	f.waiting[c.rank] = waiter{c, tag}
	f.collect = f.collect || collect
	ready := len(f.waiting) == len(f.members) && !f.sent
	var part []byte
	if ready {
		f.sent = true
		if f.collect && f.nodes > 1 {
			part, err = n.heldPart(f)
		}
	}
	n.mu.Unlock()
	switch {
	case !ready:
	case err != nil:
		n.failFence(f, err.Error())
	case f.nodes == 1:
		n.endFence(f, statusOK)
	default:
		go n.repeat(f.done, Message{Op: f.op, Nodes: f.nodes, Payload: part})
	}
	return nil
}

// heldPart is what the tasks of a fence have put for other nodes. It counts until the fence is over. The lock is held.
func (n *Node) heldPart(f *fence) ([]byte, error) {
	size := 0
	for _, r := range f.members {
		if s := n.state(r); s.committed {
			size += entryHead + len(s.far)
		}
	}
	if err := n.hold(size); err != nil {
		return nil, err
	}
	f.held = size
	return n.collected(f.members), nil
}

// setName names a set of tasks.
func setName(ranks []int32) string {
	if ranks == nil {
		return "all"
	}
	var b []byte
	for _, r := range ranks {
		b = binary.BigEndian.AppendUint32(b, uint32(r))
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// fenceOf is the fence of a set that a task comes to next. The lock is held.
func (n *Node) fenceOf(set string, ranks []int32, rank int32) (*fence, error) {
	for _, f := range n.fences {
		if _, came := f.waiting[rank]; f.set == set && !came && !f.sent {
			return f, nil
		}
	}
	if len(n.fences) >= maxFences {
		return nil, errors.New("too many fences at once")
	}
	count, known := n.counts[set]
	if !known && len(n.counts) >= maxSets {
		return nil, errors.New("too many different sets of tasks")
	}
	n.counts[set] = count + 1
	f := &fence{
		op: "fence/" + set + "/" + strconv.Itoa(count), set: set, waiting: map[int32]waiter{}, done: make(chan struct{}),
	}
	for at, node := range n.cfg.Nodes {
		has := false
		for _, r := range node.Ranks {
			if _, in := slices.BinarySearch(ranks, r); in || ranks == nil {
				has = true
				if at == n.cfg.Here {
					f.members = append(f.members, r)
				}
			}
		}
		if has {
			f.nodes++
		}
	}
	n.fences = append(n.fences, f)
	return f, nil
}

// repeat sends a message until it is answered.
func (n *Node) repeat(answered <-chan struct{}, m Message) {
	again := time.NewTicker(repeatAfter)
	defer again.Stop()
	for {
		n.cfg.Send(m)
		select {
		case <-answered:
			return
		case <-n.done:
			return
		case <-again.C:
		}
	}
}

// endFence lets all local tasks of a fence go on.
func (n *Node) endFence(f *fence, status int32) {
	n.mu.Lock()
	if f.over {
		n.mu.Unlock()
		return
	}
	f.over, f.sent = true, true
	close(f.done)
	_ = n.hold(-f.held) // after the step's end nothing is counted
	n.fences = slices.DeleteFunc(n.fences, func(o *fence) bool { return o == f })
	waiting := f.waiting
	n.mu.Unlock()
	for _, w := range waiting {
		w.c.status(w.tag, status)
	}
}

// abandoned are the fences that wait for a task that has gone without a word. The lock is held.
func (n *Node) abandoned(rank int32) []*fence {
	var list []*fence
	for _, f := range n.fences {
		if _, came := f.waiting[rank]; slices.Contains(f.members, rank) && !came {
			list = append(list, f)
		}
	}
	return list
}

// failFence ends a fence here and on the other nodes.
func (n *Node) failFence(f *fence, why string) {
	if f.nodes > 1 {
		n.cfg.Send(Message{Op: f.op, Nodes: f.nodes, Err: why})
	}
	n.endFence(f, statusLost)
}
