package stream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Patience is how long one end waits for the others, and how long after a step's end its last frames may take.
type Patience struct {
	Meet  time.Duration // 0: 1 minute
	Trail time.Duration // 0: 5 s
}

// Exchange holds the sessions of all steps with a waiting srun.
type Exchange struct {
	patience Patience

	mu       sync.Mutex
	sessions map[string]*session
	byStep   map[stepID]*session
	news     chan struct{} // closed and replaced with every session that is made
	past     past
	ends     sync.WaitGroup
	closed   bool
}

// past are the last keys whose streams are over: a node that comes with one is told so. One that comes with a key
// nobody knows may be early, at a server that was started since and whose srun is not back yet.
type past struct {
	over map[string]bool
	list [4096]string // a ring
	next int
}

func (p *past) add(token string) {
	delete(p.over, p.list[p.next])
	p.list[p.next], p.over[token] = token, true
	p.next = (p.next + 1) % len(p.list)
}

type stepID struct {
	job  core.JobID
	step int32
}

// session is one step's streams.
type session struct {
	x     *Exchange
	token string
	step  stepID
	turn  int32 // attempt of the job
	owner core.UserName
	lost  func() // srun is gone while the step runs

	mu     sync.Mutex
	srun   *wire.Conn
	taken  bool // srun is here, or on its way in
	nodes  map[core.NodeName]*nodeEnd
	left   int           // nodes whose last frame has not passed
	change chan struct{} // closed and replaced whenever somebody arrives or leaves
	over   chan struct{} // closed at the end
	err    error         // why, once over
	timer  *time.Timer

	telling  sync.Mutex // held while srun is told how many watch; taken before mu
	watchers map[*wire.Conn]bool
}

type nodeEnd struct {
	conn   *wire.Conn
	direct bool // its frames do not pass here
	done   bool // its last frame has passed
}

// New makes an exchange.
func New(p Patience) *Exchange {
	if p.Meet == 0 {
		p.Meet = time.Minute
	}
	if p.Trail == 0 {
		p.Trail = 5 * time.Second
	}
	return &Exchange{
		patience: p, sessions: map[string]*session{}, byStep: map[stepID]*session{}, news: make(chan struct{}),
		past: past{over: map[string]bool{}},
	}
}

var errOver = errors.New("the step's streams are over")

// Expect makes a session for a step under its one-time token. lost is called, once, when srun leaves before the step
// has ended, or never comes.
func (x *Exchange) Expect(token string, st *core.Step, owner core.UserName, lost func()) {
	s := &session{
		x: x, token: token, step: stepID{st.Job, st.ID}, turn: st.Attempt, owner: owner, lost: lost,
		nodes: map[core.NodeName]*nodeEnd{}, left: len(st.Nodes), change: make(chan struct{}), over: make(chan struct{}),
		watchers: map[*wire.Conn]bool{},
	}
	for _, n := range st.Nodes {
		s.nodes[n] = &nodeEnd{}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sessions[token], x.byStep[s.step] = s, s
	close(x.news)
	x.news = make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timer = time.AfterFunc(x.patience.Meet, s.missed)
}

// Again is Expect for a step whose srun is back at a server that does not know it, as one that was started since.
func (x *Exchange) Again(token string, st *core.Step, owner core.UserName, lost func()) {
	x.mu.Lock()
	s := x.byStep[stepID{st.Job, st.ID}]
	x.mu.Unlock()
	if s == nil || s.turn != st.Attempt {
		x.Expect(token, st, owner, lost)
	}
}

// Key is that of a step's streams, if its srun is there.
func (x *Exchange) Key(job core.JobID, step string) string {
	id, err := strconv.ParseInt(step, 10, 32)
	if err != nil {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.byStep[stepID{job, int32(id)}]; s != nil {
		return s.token
	}
	return ""
}

// missed ends a session whose srun did not come.
func (s *session) missed() {
	s.mu.Lock()
	came := s.srun != nil
	s.mu.Unlock()
	if !came {
		s.end(errors.New("srun did not open the step's stream"), true)
	}
}

// find returns the session of a key, or an error with the code for one that nobody knows.
func (x *Exchange) find(token string, unknown core.Code) (*session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.sessions[token]
	switch {
	case x.closed:
		return nil, core.Errorf(core.Unavailable, "the server stops")
	case s == nil && x.past.over[token]:
		return nil, core.Errorf(core.Gone, "the step's streams are over")
	case s == nil:
		return nil, core.Errorf(unknown, "there is no step with this key, or its streams are over")
	}
	x.ends.Add(1)
	return s, nil
}

// Srun joins srun's end. accept is called when the key is good and gives the connection; the call returns when the
// stream is over. With again it takes the place of a connection that srun says is broken, though nothing shows of that
// here yet.
func (x *Exchange) Srun(token string, who core.Identity, again bool, accept func() (net.Conn, error)) error {
	s, err := x.find(token, core.Gone)
	if err != nil {
		return err
	}
	defer x.ends.Done()
	if who.User != s.owner && !who.Admin {
		return core.Errorf(core.Denied, "the step is %s's", s.owner)
	}
	s.mu.Lock()
	for again && s.taken && s.srun == nil { // the connection that broke is still on its way in
		change := s.change
		s.mu.Unlock()
		select {
		case <-change:
		case <-s.over:
			return core.Errorf(core.Gone, "the step's streams are over")
		}
		s.mu.Lock()
	}
	old := s.srun
	taken := s.taken && !(again && old != nil)
	s.taken = true
	s.mu.Unlock()
	if taken {
		return core.Errorf(core.Conflict, "the step has its srun already")
	}
	raw, err := accept()
	if err != nil {
		s.mu.Lock()
		s.taken = old != nil // it may try again
		s.announce()
		s.mu.Unlock()
		return err
	}
	c := wire.NewConn(raw)
	defer c.Close()
	s.mu.Lock()
	s.srun = c
	s.announce()
	s.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	unhook := s.closeAtEnd(c)
	defer unhook()
	err = s.fromSrun(c)
	s.mu.Lock()
	replaced := s.srun != c
	s.mu.Unlock()
	if !replaced {
		s.end(err, true)
	}
	return nil
}

// fromSrun passes srun's frames to all nodes.
func (s *session) fromSrun(c *wire.Conn) error {
	for {
		f, err := c.Next()
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.TypeDirectNews:
			var n wire.DirectNews
			if err := f.Decode(&n); err != nil {
				return err
			}
			s.news(n)
			continue
		case wire.TypeLayout, wire.TypeIO, wire.TypeTaskExit, wire.TypeStepExit, wire.TypeBye:
			s.toWatchers(f)
			continue
		}
		for name := range s.nodes { // the set of keys never changes
			if err := s.toNode(name, f); err != nil {
				return err
			}
		}
	}
}

// news takes srun's word on a node that it hears directly.
func (s *session) news(n wire.DirectNews) {
	end := s.nodes[n.Node]
	if end == nil {
		return
	}
	if n.State == "done" {
		s.passed(end)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	end.direct = n.State == "direct"
	s.announce()
}

// toNode sends a frame to a node, waiting for one that has not come yet. A connection that breaks loses the frame: what
// it carried of the input cannot be told from what was read.
func (s *session) toNode(name core.NodeName, f wire.Frame) error {
	for {
		s.mu.Lock()
		n, change := s.nodes[name], s.change
		conn, done := n.conn, n.done || n.direct
		s.mu.Unlock()
		switch {
		case done:
			return nil
		case conn != nil:
			_ = conn.Send(f.Type, json.RawMessage(f.Header), f.Payload) // the node's reader sees the break
			return nil
		}
		select {
		case <-change:
		case <-s.over:
			return errOver
		}
	}
}

// Step joins a node's end.
func (x *Exchange) Step(token string, node core.NodeName, accept func() (net.Conn, error)) error {
	s, err := x.find(token, core.NotFound)
	if err != nil {
		return err
	}
	defer x.ends.Done()
	n := s.nodes[node]
	if n == nil {
		return core.Errorf(core.Denied, "the step is not on %s", node)
	}
	raw, err := accept()
	if err != nil {
		return err
	}
	c := wire.NewConn(raw)
	defer c.Close()
	s.mu.Lock()
	old := n.conn
	n.conn = c
	s.announce()
	s.mu.Unlock()
	if old != nil {
		_ = old.Close() // half-open
	}
	unhook := s.closeAtEnd(c)
	defer unhook()
	err = s.fromNode(c, n)
	s.mu.Lock()
	if n.conn == c {
		n.conn = nil
	}
	s.announce()
	s.mu.Unlock()
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// fromNode passes a node's frames to srun, until its last one.
func (s *session) fromNode(c *wire.Conn, n *nodeEnd) error {
	srun, err := s.waitSrun()
	if err != nil {
		return err
	}
	for {
		f, err := c.Next()
		if err != nil {
			return err
		}
		if err := srun.Send(f.Type, json.RawMessage(f.Header), f.Payload); err != nil {
			return err
		}
		if f.Type == wire.TypeStepExit {
			s.passed(n)
			return nil
		}
		f.Free()
	}
}

func (s *session) waitSrun() (*wire.Conn, error) {
	for {
		s.mu.Lock()
		srun, change := s.srun, s.change
		s.mu.Unlock()
		if srun != nil {
			return srun, nil
		}
		select {
		case <-change:
		case <-s.over:
			return nil, errOver
		}
	}
}

// passed notes that a node's last frame has gone to srun. After the last node's srun hangs up by itself when it has
// read all; one that does not is hung up on.
func (s *session) passed(n *nodeEnd) {
	s.mu.Lock()
	if !n.done {
		n.done = true
		s.left--
		s.announce()
	}
	if s.left == 0 {
		s.rearm(s.x.patience.Trail, func() { s.end(nil, false) })
	}
	s.mu.Unlock()
}

// rearm replaces what the timer does. s.mu is held.
func (s *session) rearm(after time.Duration, f func()) {
	s.timer.Stop()
	s.timer = time.AfterFunc(after, f)
}

// announce wakes all who wait for somebody. s.mu is held.
func (s *session) announce() {
	close(s.change)
	s.change = make(chan struct{})
}

// closeAtEnd closes c when the session is over.
func (s *session) closeAtEnd(c *wire.Conn) (unhook func()) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the session or with unhook
		select {
		case <-s.over:
			_ = c.Close()
		case <-ctx.Done():
		}
	}()
	return cancel
}

// end closes the session once. With broken, a step that still runs has lost its srun.
func (s *session) end(err error, broken bool) {
	s.x.mu.Lock()
	if s.x.sessions[s.token] != s {
		s.x.mu.Unlock()
		return
	}
	delete(s.x.sessions, s.token)
	s.x.past.add(s.token)
	if s.x.byStep[s.step] == s { // else it is a later attempt's
		delete(s.x.byStep, s.step)
	}
	closed := s.x.closed
	s.x.mu.Unlock()
	s.mu.Lock()
	s.timer.Stop()
	left := s.left
	s.err = err
	s.mu.Unlock()
	close(s.over)
	if broken && left > 0 && !closed {
		s.lost()
	}
}

// Ended says that the engine has a step's end. Nodes that have not sent their last frame within the trail, and are not
// there to do so, never will: srun is told so in their place. Those that are there may have much to send, and get
// longer.
func (x *Exchange) Ended(st *core.Step) {
	x.mu.Lock()
	s := x.byStep[stepID{st.Job, st.ID}]
	x.mu.Unlock()
	if s == nil || s.turn != st.Attempt {
		return
	}
	exit, message := st.Exit, st.Message
	if exit == (core.Exit{}) {
		exit.Signal = 9
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left > 0 {
		s.rearm(x.patience.Trail, func() {
			s.speakFor(exit, message, func(n *nodeEnd) bool { return n.conn == nil && !n.direct })
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.left > 0 {
				s.rearm(x.patience.Meet, func() { s.speakFor(exit, message, func(*nodeEnd) bool { return true }) })
			}
		})
	}
}

// speakFor sends the last frames of nodes that did not and of which is true.
func (s *session) speakFor(exit core.Exit, message string, which func(*nodeEnd) bool) {
	s.mu.Lock()
	srun := s.srun
	missing := map[core.NodeName]*nodeEnd{}
	for name, n := range s.nodes {
		if !n.done && which(n) {
			missing[name] = n
		}
	}
	s.mu.Unlock()
	for name, n := range missing {
		if srun != nil {
			_ = srun.Send(wire.TypeStepExit, wire.TaskExit{Rank: -1, Node: name, Exit: exit, Cause: "lost", Message: message})
		}
		s.passed(n)
	}
}

// Close ends all sessions and waits for their connections.
func (x *Exchange) Close() {
	x.mu.Lock()
	x.closed = true
	all := make([]*session, 0, len(x.sessions))
	for _, s := range x.sessions {
		all = append(all, s)
	}
	x.mu.Unlock()
	for _, s := range all {
		s.end(errors.New("the server stops"), true)
	}
	x.ends.Wait()
}
