package pmix

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"
)

func (n *Node) sizes() (fences, ranks int, held int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.fences), len(n.ranks), n.held
}

func message(tag uint32, body []byte) []byte {
	head := make([]byte, headerSize)
	binary.BigEndian.PutUint32(head[4:], tag)
	binary.BigEndian.PutUint32(head[8:], uint32(len(body)))
	return append(head, body...)
}

func TestLongKey(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	k := s.task(0, 0, "v41")
	k.put("k", "v")
	k.get(0, strings.Repeat("x", maxKey+1))
	if got := k.status(); got != statusBadParam {
		t.Errorf("status %d of a key that is too long", got)
	}
}

// A task that comes to fences alone and goes leaves no more of them than the bound.
func TestManyFences(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	n := s.nodes[0]
	for range maxFences/maxCalls + 2 {
		k := s.task(0, 0, "v41")
		for range maxCalls {
			w := &writer{dialect: k.d}
			w.one().byte(cmdFence)
			w.one().size(1)
			w.int32(1)
			w.proc("slurm.pmix.12.0", rankWildcard)
			w.one().size(0)
			if _, err := k.conn.Write(message(1, w.b)); err != nil {
				break // it was cut off
			}
		}
		_ = k.conn.Close()
		for connected(n) > 0 {
			runtime.Gosched()
		}
	}
	if fences, _, _ := n.sizes(); fences > maxFences {
		t.Errorf("%d fences are kept", fences)
	}
}

// What waits for other nodes counts, and no longer than it waits.
func TestHeldPart(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	a, b := s.task(0, 0, "v41"), s.task(1, 1, "v41")
	a.put("k", strings.Repeat("v", 1<<20))
	_, _, before := s.nodes[0].sizes()
	a.fence(true, 0, 1)
	for {
		if _, _, held := s.nodes[0].sizes(); held > before+1<<20 {
			break
		}
		runtime.Gosched()
	}
	b.fence(true, 0, 1)
	if x, y := a.status(), b.status(); x != statusOK || y != statusOK {
		t.Errorf("%d, %d", x, y)
	}
	if _, _, held := s.nodes[0].sizes(); held != before {
		t.Errorf("%d bytes are held, before %d", held, before)
	}
}

func TestAskForNobody(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	_, before, _ := s.nodes[0].sizes()
	s.nodes[0].Deliver(Message{Op: "ask/77"})
	if _, ranks, _ := s.nodes[0].sizes(); ranks != before {
		t.Error("a task that there is not is remembered")
	}
}
