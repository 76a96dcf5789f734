package pmix

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// step is a step on some nodes, and what srun does between them.
type step struct {
	t     *testing.T
	nodes []*Node

	mu     sync.Mutex
	came   map[string][]Message
	aborts []string
}

func newStep(t *testing.T, change func(*Config), layout ...Placement) *step {
	s := &step{t: t, came: map[string][]Message{}}
	size := 0
	for _, p := range layout {
		size += len(p.Ranks)
	}
	for i := range layout {
		cfg := Config{
			Job: 12, Namespace: "slurm.pmix.12.0", UID: uint32(os.Getuid()), Size: size, Nodes: layout, Here: i, Send: s.send,
			Abort: func(_ int32, code int, message string) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.aborts = append(s.aborts, message+" "+string(rune('0'+code)))
			},
		}
		if change != nil {
			change(&cfg)
		}
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		s.nodes = append(s.nodes, n)
	}
	return s
}

func (s *step) send(m Message) {
	s.mu.Lock()
	if m.Nodes > 0 && m.Err == "" {
		s.came[m.Op] = append(s.came[m.Op], m)
		if len(s.came[m.Op]) < m.Nodes {
			s.mu.Unlock()
			return
		}
		all := Message{Op: m.Op}
		for _, one := range s.came[m.Op] {
			all.Payload = append(all.Payload, one.Payload...)
		}
		m = all
	}
	s.mu.Unlock()
	for _, n := range s.nodes {
		n.Deliver(m)
	}
}

// task is a client.
type task struct {
	t    *testing.T
	conn net.Conn
	d    dialect
	tag  uint32
}

func greeting(nspace string, rank uint32, module string) []byte {
	var b []byte
	b = append(b, "native\x00"...)
	b = binary.BigEndian.AppendUint32(b, 8)
	b = append(b, make([]byte, 8)...)
	b = append(b, clientFlag)
	b = append(b, nspace+"\x00"...)
	b = binary.BigEndian.AppendUint32(b, rank)
	b = append(b, "4.2.2\x00"+module+"\x00\x01hash\x00"...)
	head := make([]byte, headerSize)
	binary.NativeEndian.PutUint32(head[8:], uint32(len(b)))
	return append(head, b...)
}

func dial(t *testing.T, n *Node, hello []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", n.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.Write(hello); err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *step) task(node int, rank uint32, module string) *task {
	s.t.Helper()
	c := dial(s.t, s.nodes[node], greeting("slurm.pmix.12.0", rank, module))
	var answer [8]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil || !bytes.Equal(answer[:4], make([]byte, 4)) {
		s.t.Fatalf("handshake of task %d: %v, %v", rank, answer, err)
	}
	d, err := dialectOf(module)
	if err != nil {
		s.t.Fatal(err)
	}
	return &task{t: s.t, conn: c, d: d, tag: 100}
}

// ask sends a call.
func (k *task) ask(cmd byte, add func(w *writer)) {
	k.t.Helper()
	w := &writer{dialect: k.d}
	w.one().byte(cmd)
	if add != nil {
		add(w)
	}
	k.tag++
	head := make([]byte, headerSize)
	binary.BigEndian.PutUint32(head[4:], k.tag)
	binary.BigEndian.PutUint32(head[8:], uint32(len(w.b)))
	if _, err := k.conn.Write(append(head, w.b...)); err != nil {
		k.t.Fatal(err)
	}
}

// answer is the next reply.
func (k *task) answer() *reader {
	k.t.Helper()
	var head [headerSize]byte
	if _, err := io.ReadFull(k.conn, head[:]); err != nil {
		k.t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint32(head[8:]))
	if _, err := io.ReadFull(k.conn, body); err != nil {
		k.t.Fatal(err)
	}
	if tag := binary.BigEndian.Uint32(head[4:]); tag != k.tag {
		k.t.Errorf("a reply to %d, not to %d", tag, k.tag)
	}
	return &reader{dialect: k.d, b: body}
}

func (k *task) status() int32 {
	k.t.Helper()
	r := k.answer()
	r.items(1)
	return r.int32()
}

// put commits one key for everybody.
func (k *task) put(key, value string) {
	k.t.Helper()
	one := &writer{dialect: k.d}
	one.kvString(key, value)
	k.ask(cmdCommit, func(w *writer) {
		for scope := byte(1); scope <= 2; scope++ {
			w.one().byte(scope)
			w.one().byte(1)
			w.blob(one.b)
		}
	})
	if got := k.status(); got != statusOK {
		k.t.Errorf("commit: %d", got)
	}
}

// fence asks for a fence of the given ranks.
func (k *task) fence(collect bool, ranks ...uint32) {
	k.t.Helper()
	k.ask(cmdFence, func(w *writer) {
		w.one().size(len(ranks))
		w.int32(int32(len(ranks)))
		for _, r := range ranks {
			w.proc("slurm.pmix.12.0", r)
		}
		w.one().size(1)
		w.one().info("pmix.collect", typeBool)
		w.bool(collect)
	})
}

func (k *task) get(rank uint32, key string) {
	k.t.Helper()
	k.ask(cmdGet, func(w *writer) {
		w.one().string("slurm.pmix.12.0")
		w.one().uint32(rank)
		w.one().size(0)
		w.one().string(key)
	})
}

// value is the value of a key in the reply to a get.
func (k *task) value(key string) string {
	k.t.Helper()
	r := k.answer()
	r.items(1)
	if code := r.int32(); code != statusOK {
		return "status " + map[int32]string{statusNotFound: "not found"}[code]
	}
	r.items(1)
	in := &reader{dialect: k.d, b: r.blob()}
	in.items(1)
	in.string()
	in.uint32()
	for len(in.b) > 0 && in.err == nil {
		in.items(1)
		name := in.string()
		if t := in.uint16(); name == key && t == typeString {
			return in.string()
		} else {
			in.skip(t, 0)
		}
	}
	return "nothing"
}

var twoNodes = []Placement{{Name: "n1", Ranks: []int32{0, 2}}, {Name: "n2", Ranks: []int32{1, 3}}}

func TestExchange(t *testing.T) {
	for _, module := range []string{"v41", "v4", "v3", "v21"} {
		t.Run(module, func(t *testing.T) {
			s := newStep(t, nil, twoNodes...)
			tasks := []*task{s.task(0, 0, module), s.task(1, 1, module), s.task(0, 2, module), s.task(1, 3, module)}
			for i, k := range tasks {
				k.ask(cmdJobInfo, nil)
				r := k.answer()
				r.items(1)
				if name := r.string(); name != "slurm.pmix.12.0" {
					t.Errorf("job info of %q", name)
				}
				keys, vague := keysOf(k.d, r.b)
				if vague || !keys["pmix.job.size"] || !keys["pmix.node.arr"] || !keys["pmix.pblob"] {
					t.Errorf("job info: %v, %v", keys, vague)
				}
				k.put("greeting", "from "+string(rune('0'+i)))
			}
			for _, k := range tasks {
				k.fence(true, rankWildcard)
			}
			for _, k := range tasks {
				if got := k.status(); got != statusOK {
					t.Errorf("fence: %d", got)
				}
				for rank := range uint32(4) {
					k.get(rank, "greeting")
					if got, want := k.value("greeting"), "from "+string(rune('0'+rank)); got != want {
						t.Errorf("of %d: %q", rank, got)
					}
				}
			}
			for _, k := range tasks {
				k.ask(cmdFinalize, nil)
				if got := k.status(); got != statusOK {
					t.Errorf("finalize: %d", got)
				}
			}
		})
	}
}

// A task may ask for what another has not committed yet, here and on another node.
func TestGetWaits(t *testing.T) {
	s := newStep(t, func(c *Config) { c.Patience = time.Millisecond }, twoNodes...)
	a, b, c := s.task(0, 0, "v41"), s.task(0, 2, "v41"), s.task(1, 1, "v41")
	b.get(0, "late")
	c.get(0, "late")
	a.put("late", "at last")
	for _, k := range []*task{b, c} {
		if got := k.value("late"); got != "at last" {
			t.Errorf("%q", got)
		}
	}
	c.get(0, "never") // it has committed: it is not waited for long
	if got := c.value("never"); got != "status not found" {
		t.Errorf("%q", got)
	}
	a.ask(cmdGet, func(w *writer) {
		w.one().string("slurm.pmix.12.0")
		w.one().uint32(3)
		w.one().size(1)
		w.one().info("pmix.immediate", typeBool)
		w.bool(true)
		w.one().string("pmix.cpuset")
	})
	if got := a.status(); got != statusNotFound {
		t.Errorf("of one that has not connected, at once: %d", got)
	}
}

// Some tasks may meet without the others, and more than once.
func TestSomeMeet(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	a, b, c := s.task(0, 0, "v41"), s.task(1, 3, "v41"), s.task(0, 2, "v41")
	for range 3 {
		a.fence(false, 3, 0)
		b.fence(false, 0, 3)
		if x, y := a.status(), b.status(); x != statusOK || y != statusOK {
			t.Errorf("two nodes: %d, %d", x, y)
		}
		a.fence(false, 0, 2)
		c.fence(false, 0, 2)
		if x, y := a.status(), c.status(); x != statusOK || y != statusOK {
			t.Errorf("one node: %d, %d", x, y)
		}
	}
	a.fence(false, 2, 3)
	if got := a.status(); got != statusBadParam {
		t.Errorf("a fence of others: %d", got)
	}
	a.fence(false, 0, 9)
	if got := a.status(); got != statusNotSupported {
		t.Errorf("a fence with a task of another job: %d", got)
	}
}

// Those who wait for a task that dies are told, on all nodes.
func TestTaskGone(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	a, b, c, d := s.task(0, 0, "v41"), s.task(1, 1, "v41"), s.task(0, 2, "v41"), s.task(1, 3, "v41")
	for _, k := range []*task{a, b, d} {
		k.fence(true, rankWildcard)
	}
	for waiting(s.nodes[0])+waiting(s.nodes[1]) < 3 {
		runtime.Gosched()
	}
	_ = c.conn.Close()
	for _, k := range []*task{a, b, d} {
		if got := k.status(); got != statusLost {
			t.Errorf("fence: %d", got)
		}
	}
}

// waiting is how many tasks wait at fences.
func waiting(n *Node) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, f := range n.fences {
		count += len(f.waiting)
	}
	return count
}

func connected(n *Node) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

func TestAbortAndRefused(t *testing.T) {
	s := newStep(t, nil, Placement{Name: "n1", Ranks: []int32{0}})
	k := s.task(0, 0, "v41")
	for _, cmd := range []byte{6, 7, 8, 9, 10, 15, 24, 99} {
		if k.ask(cmd, nil); k.status() != statusNotSupported {
			t.Errorf("call %d is served", cmd)
		}
	}
	k.ask(cmdAbort, func(w *writer) {
		w.one().int32(7)
		w.one().string("bad")
		w.one().size(0)
	})
	if got := k.status(); got != statusOK {
		t.Errorf("abort: %d", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.aborts, []string{"bad 7"}) {
		t.Errorf("aborts: %q", s.aborts)
	}
}

// cut waits for the other side to hang up.
func cut(t *testing.T, c net.Conn) {
	t.Helper()
	if b, err := io.ReadAll(c); err == nil && len(b) > 0 {
		t.Errorf("an answer: %v", b)
	}
}

func TestStrangers(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	for name, hello := range map[string][]byte{
		"another job":       greeting("slurm.pmix.13.0", 0, "v41"),
		"of another node":   greeting("slurm.pmix.12.0", 1, "v41"),
		"no such task":      greeting("slurm.pmix.12.0", 1<<31, "v41"),
		"unknown packing":   greeting("slurm.pmix.12.0", 0, "v99"),
		"nothing":           make([]byte, headerSize),
		"endless handshake": slices.Repeat([]byte{0xff}, headerSize),
	} {
		t.Run(name, func(t *testing.T) { cut(t, dial(t, s.nodes[0], hello)) })
	}
	other := newStep(t, func(c *Config) { c.UID++ }, twoNodes...)
	cut(t, dial(t, other.nodes[0], greeting("slurm.pmix.12.0", 0, "v41")))
}

func TestTooMany(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	for range connsPerRank {
		s.task(0, 0, "v41")
	}
	cut(t, dial(t, s.nodes[0], greeting("slurm.pmix.12.0", 0, "v41")))
	k := s.task(0, 2, "v41")
	head := make([]byte, headerSize)
	binary.BigEndian.PutUint32(head[8:], maxMessage+1)
	if _, err := k.conn.Write(head); err != nil {
		t.Fatal(err)
	}
	cut(t, k.conn)
}

// Whatever a task says, the others are served.
func TestNonsense(t *testing.T) {
	s := newStep(t, nil, twoNodes...)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 300 {
		k := s.task(0, 0, []string{"v41", "v3"}[i%2])
		k.ask(byte(rng.IntN(16)), func(w *writer) {
			for range rng.IntN(60) {
				w.byte([]byte{0, 1, 2, 27, 39, 0x80, 0xff, byte(rng.IntN(256))}[rng.IntN(8)])
			}
		})
		_ = k.conn.Close()
		for connected(s.nodes[0]) > 0 {
			runtime.Gosched()
		}
	}
	a, b := s.task(0, 2, "v41"), s.task(0, 2, "v41")
	a.put("k", "v")
	b.get(2, "k")
	if got := b.value("k"); got != "v" {
		t.Errorf("%q", got)
	}
	for _, n := range s.nodes {
		n.Deliver(Message{Op: "tell/1", Payload: []byte{0, 0, 0, 1, 1, 0xff, 0xff, 0xff, 0xff}})
		n.Deliver(Message{Op: "fence/all/0", Payload: []byte{1}})
		n.Deliver(Message{Op: "ask/77"})
		n.Deliver(Message{})
	}
}

func TestOwner(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	out, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for name, f := range map[string]func() (uint32, error){
		"asked": func() (uint32, error) { return ownerOf(in) },
		"table": func() (uint32, error) { return tableOwner(addrPort(in.RemoteAddr()), addrPort(in.LocalAddr())) },
	} {
		if uid, err := f(); err != nil || uid != uint32(os.Getuid()) {
			t.Errorf("%s: %d, %v", name, uid, err)
		}
	}
	_ = out.Close()
	if uid, err := ownerOf(in); err == nil {
		t.Errorf("a socket that is closed is of %d", uid)
	}
}

func TestIntegers(t *testing.T) {
	for _, d := range []dialect{{flex: true}, {}} {
		for _, v := range []int32{0, 1, -1, 63, 64, -64, -65, 1 << 30, -1 << 31, 1<<31 - 1} {
			w := &writer{dialect: d}
			w.int32(v)
			w.uint32(uint32(v))
			w.uint16(uint16(v))
			w.size(int(uint32(v)))
			w.string(strings.Repeat("x", int(uint16(v))%300))
			r := &reader{dialect: d, b: w.b}
			a, b, c, e, f := r.int32(), r.uint32(), r.uint16(), r.tagged(), r.string()
			if a != v || b != uint32(v) || c != uint16(v) || e != uint64(uint32(v)) || len(f) != int(uint16(v))%300 ||
				r.err != nil || len(r.b) > 0 {
				t.Errorf("%v of %d: %d %d %d %d %q %v", d, v, a, b, c, e, f, r.err)
			}
		}
	}
	w := &writer{dialect: dialect{flex: true}}
	w.flexUint(1<<64 - 1)
	if r := (&reader{dialect: w.dialect, b: w.b}); len(w.b) != 9 || r.flexUint() != 1<<64-1 {
		t.Errorf("the largest: %x", w.b)
	}
}
