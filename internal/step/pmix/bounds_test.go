package pmix

import (
	"encoding/binary"
	"net"
	"runtime"
	"strings"
	"sync"
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

// Tasks that do not read their answers make the keeper hold no more than the bound, and nothing once they are gone.
// What many of them are told counts once.
func TestUnreadAnswers(t *testing.T) {
	n := newStep(t, nil, Placement{Name: "n1", Ranks: []int32{0}}).nodes[0]
	const most, size = 16 << 20, 1 << 20
	n.waits.most = most
	before := total.Load()
	waits := func() (large, small int64) {
		n.waits.mu.Lock()
		defer n.waits.mu.Unlock()
		return n.waits.large, n.waits.small
	}
	ended := func(c *conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.ended
	}
	var writers sync.WaitGroup
	var conns []*conn
	tell := func(body []byte) (cut bool) {
		here, there := net.Pipe() // nothing is under way in it
		t.Cleanup(func() { _ = there.Close() })
		c := newConn(n, here)
		conns = append(conns, c)
		writers.Go(c.write)
		c.reply(1, body)
		return ended(c)
	}
	same := make([]byte, size)
	for range 100 {
		if tell(same) {
			t.Fatal("a task was cut off for an answer that all get")
		}
	}
	told := 1
	for ; told <= 2*most/size && !tell(make([]byte, size)); told++ {
		if large, _ := waits(); large > most {
			t.Fatalf("%d bytes wait", large)
		}
	}
	if told != most/size {
		t.Errorf("%d different answers of %d bytes wait", told, size)
	}
	for i := 0; ; i++ { // many small ones, on one connection after the other
		c := conns[i%100]
		if c.reply(1, make([]byte, smallMessage)); ended(c) {
			break
		}
		if _, small := waits(); small > maxSmall+100*smallMessage {
			t.Fatalf("%d small bytes wait", small)
		}
	}
	for _, c := range conns {
		c.close()
	}
	writers.Wait()
	if large, small := waits(); large != 0 || small != 0 || total.Load() != before {
		t.Errorf("when all are gone: %d, %d, %d", large, small, total.Load()-before)
	}
}
