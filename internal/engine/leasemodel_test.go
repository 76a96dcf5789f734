package engine

import (
	"fmt"
	"testing"
)

// A model of leadership and fences (docs/adr/0011): two servers, a store, one agent with a fenced job, messages that
// are lost or late, and clocks of their own. explore visits every state that can be reached and fails on one in which
// two servers hold the lease, or in which the job runs twice. Time is in ticks of the store's clock; who drifts misses
// a tick (its clock is slow) or counts one twice (fast), as often as drift allows.

// modelRules are what the servers and the agent go by. Those of the product are in soundRules; each weaker set must
// be found out.
type modelRules struct {
	lease       int8 // in the store
	valid       int8 // of it, what the holder uses
	fence       int8 // of the agent
	fenceMargin int8 // later the server requeues
	drift       int8 // ticks each clock may be off in all
	// What can be got wrong:
	answerAlways    bool // heartbeats are answered without a valid lease
	countFromAnswer bool // the agent counts its fence from the answer, not from when it asked
	grantFromAnswer bool // the holder counts the lease from the answer
	launchLate      bool // an agent whose fence has passed launches
	inheritSilence  bool // a new leader counts the silence from before it led
}

var soundRules = modelRules{lease: 3, valid: 2, fence: 2, fenceMargin: 2, drift: 1}

// none is an age or a rest of something that is not there.
const none = -1

// modelServer is one server.
type modelServer struct {
	left    int8 // ticks of its lease by its own clock; 0: it does not lead
	quiet   int8 // ticks since it heard the agent, by its own clock
	request int8 // age of a request for the lease that is on its way to the store; none: there is none
	answer  int8 // age, since it was asked, of a granted lease on its way back
	drift   int8 // its clock may still be off
}

// modelState is a moment. It is comparable, and so a key.
type modelState struct {
	holder    int8 // of the lease in the store; none: nobody
	expires   int8 // ticks until another may take it
	server    [2]modelServer
	agent     int8 // the server the agent talks to
	silence   int8 // by the agent's clock, what its fence counts
	beat      int8 // age, by the agent's clock, of a heartbeat on its way
	pong      int8 // age of the heartbeat that the answer on its way is for
	drift     int8 // of the agent
	running   bool // the first attempt, on the agent's node
	launching bool // it is on its way there
	behind    bool // the answer to the heartbeat is behind it: a connection keeps the order
	requeued  bool // the second attempt runs, elsewhere
}

// moves lists what may happen next; each is one event anywhere.
func (r *modelRules) moves(s modelState, next []modelState) []modelState {
	add := func(change func(n *modelState)) {
		n := s
		change(&n)
		next = append(next, n)
	}
	for i := range s.server {
		next = r.serverMoves(s, int8(i), next)
	}
	me := s.agent
	if s.beat == none { // the agent asks
		add(func(n *modelState) { n.beat = 0 })
	} else { // the server hears it; that it is lost is to wait forever
		hears := s.server[me].left > 0
		if hears || r.answerAlways {
			add(func(n *modelState) {
				n.pong, n.beat, n.behind = s.beat, none, s.launching
				if hears {
					n.server[me].quiet = 0
				}
			})
		}
	}
	if s.pong != none && !(s.launching && s.behind) {
		add(func(n *modelState) {
			age := s.pong
			if r.countFromAnswer {
				age = 0
			}
			n.silence, n.pong = min(n.silence, age), none
		})
	}
	// It leaves; what is on its way on that connection never comes.
	add(func(n *modelState) { n.agent, n.beat, n.pong, n.launching = 1-me, none, none, false })
	if s.server[me].left > 0 && !s.requeued && !s.running && !s.launching { // whoever leads sends what is not there
		add(func(n *modelState) { n.launching, n.behind = true, false })
	}
	if s.launching && (s.pong == none || s.behind) {
		add(func(n *modelState) {
			n.launching = false
			n.running = r.launchLate || s.silence < r.fence
		})
	}
	return r.ticks(s, next)
}

// serverMoves are those of one server and of the store with it.
func (r *modelRules) serverMoves(s modelState, i int8, next []modelState) []modelState {
	add := func(change func(n *modelState)) {
		n := s
		change(&n)
		next = append(next, n)
	}
	me := s.server[i]
	if me.request == none && me.answer == none {
		add(func(n *modelState) { n.server[i].request = 0 })
	}
	if me.request != none {
		add(func(n *modelState) { n.server[i].request = none }) // lost
		if s.holder == i || s.expires == 0 {
			add(func(n *modelState) {
				n.holder, n.expires = i, r.lease
				n.server[i].answer, n.server[i].request = me.request, none
			})
		}
	}
	if me.answer != none {
		add(func(n *modelState) { n.server[i].answer = none }) // lost
		add(func(n *modelState) {
			age := me.answer
			if r.grantFromAnswer {
				age = 0
			}
			n.server[i].answer = none
			if me.left == 0 && !r.inheritSilence { // it begins to lead, and to count
				n.server[i].quiet = 0
			}
			n.server[i].left = max(me.left, r.valid-age, 0)
		})
	}
	if me.left > 0 && me.quiet >= r.fence+r.fenceMargin && !s.requeued && s.holder == i { // the store takes the commit
		add(func(n *modelState) { n.requeued = true })
	}
	return next
}

// ticks are the ways in which a moment passes: each clock may be off once.
func (r *modelRules) ticks(s modelState, next []modelState) []modelState {
	for off := range 27 { // of three clocks, each slow, right or fast
		steps := [3]int8{int8(off % 3), int8(off / 3 % 3), int8(off / 9)}
		left := [3]int8{s.server[0].drift, s.server[1].drift, s.drift}
		may := true
		for i, k := range steps {
			if k != 1 {
				left[i]--
				may = may && left[i] >= 0
			}
		}
		if !may {
			continue
		}
		n := s
		n.expires = max(0, n.expires-1)
		n.server[0].drift, n.server[1].drift, n.drift = left[0], left[1], left[2]
		for i := range n.server {
			v := &n.server[i]
			v.left = max(0, v.left-steps[i])
			if v.quiet = min(v.quiet+steps[i], r.fence+r.fenceMargin); v.left == 0 && !r.inheritSilence {
				v.quiet = 0 // it counts from again when it leads again
			}
			v.request = r.older(v.request, steps[i])
			if v.answer = r.older(v.answer, steps[i]); v.answer >= r.valid && !r.grantFromAnswer {
				v.answer = none // it gives nothing any more
			}
		}
		k := steps[2]
		n.silence = min(n.silence+k, r.fence)
		n.beat, n.pong = r.older(n.beat, k), r.older(n.pong, k)
		if n.silence >= r.fence {
			n.running = false // the agent kills
		}
		next = append(next, n)
	}
	return next
}

// older ages what is there. What is older than a lease and a fence makes no difference any more.
func (r *modelRules) older(age, by int8) int8 {
	if age == none {
		return none
	}
	return min(age+by, max(r.valid, r.fence))
}

// fault names what must never be.
func (s *modelState) fault() string {
	switch {
	case s.server[0].left > 0 && s.server[1].left > 0:
		return "two servers hold the lease"
	case s.requeued && s.running:
		return "the job runs twice"
	}
	return ""
}

// explore visits every state, and returns how many there are and the first fault.
func (r *modelRules) explore() (states int, fault string) {
	begin := modelState{
		holder: 0, expires: r.lease, agent: 0, beat: none, pong: none, drift: r.drift, running: false, launching: true,
	}
	for i := range begin.server {
		begin.server[i] = modelServer{request: none, answer: none, drift: r.drift}
	}
	begin.server[0].left = r.valid
	seen := map[modelState]struct{}{begin: {}}
	buf := make([]modelState, 0, 64)
	for queue := []modelState{begin}; len(queue) > 0; {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, n := range r.moves(s, buf[:0]) {
			if _, been := seen[n]; been {
				continue
			}
			if why := n.fault(); why != "" {
				return len(seen), fmt.Sprintf("%s: %+v after %+v", why, n, s)
			}
			seen[n] = struct{}{}
			queue = append(queue, n)
		}
	}
	return len(seen), ""
}

// TestLeaseModel: no order of events has two leaders or runs a fenced job twice.
func TestLeaseModel(t *testing.T) {
	t.Parallel()
	r := soundRules
	states, fault := r.explore()
	if fault != "" {
		t.Fatal(fault)
	}
	t.Logf("%d states", states)
}

// TestLeaseModelFindsFaults: each rule is needed; the model finds what happens without it.
func TestLeaseModelFindsFaults(t *testing.T) {
	t.Parallel()
	for name, weaken := range map[string]func(r *modelRules){
		"the holder uses all of the lease":            func(r *modelRules) { r.valid = r.lease },
		"the lease counts from the answer":            func(r *modelRules) { r.grantFromAnswer = true },
		"heartbeats are always answered":              func(r *modelRules) { r.answerAlways = true },
		"the fence counts from the answer":            func(r *modelRules) { r.countFromAnswer = true },
		"the server requeues without a margin":        func(r *modelRules) { r.fenceMargin = 0 },
		"a launch that comes late is carried out":     func(r *modelRules) { r.launchLate = true },
		"a new leader inherits the old one's silence": func(r *modelRules) { r.inheritSilence = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := soundRules
			weaken(&r)
			states, fault := r.explore()
			if fault == "" {
				t.Errorf("nothing found in %d states", states)
			}
		})
	}
}
