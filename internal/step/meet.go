package step

import (
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"bireme.dev/bireme/internal/step/pmi"
	"bireme.dev/bireme/internal/wire"
)

// meeting is how the tasks of an MPI step find those on other nodes: at each fence the keeper tells srun, by the agent,
// what its tasks put, and srun tells all nodes what everybody did.
type meeting struct {
	s    *step
	node *pmi.Node

	mu      sync.Mutex
	answers map[int]answer
	changed chan struct{} // closed and replaced when an answer comes
	over    chan struct{}
	ended   sync.Once
}

type answer struct {
	all map[string]string
	err error
}

// meetAgain is after how long a node tells its part again: a message may be lost with the agent that carried it.
const meetAgain = 5 * time.Second

// openMeeting begins to serve PMI, if the step's tasks want it.
func (s *step) openMeeting(tasks []wire.Task) error {
	p := s.l.Program.PMI
	if p == nil {
		return nil
	}
	m := &meeting{s: s, answers: map[int]answer{}, changed: make(chan struct{}), over: make(chan struct{})}
	ranks := make([]int32, len(tasks))
	for i := range tasks {
		ranks[i] = int32(tasks[i].Rank)
	}
	mapping := ""
	if len(p.Counts) > 0 {
		mapping = pmi.Mapping(p.Counts)
	}
	var err error
	m.node, err = pmi.New(pmi.Config{
		Job: p.Job, Size: p.Size, Ranks: ranks, Mapping: mapping, Exchange: m.exchange,
		Abort: func(rank int32, code int, message string) {
			if message == "" {
				message = "a task aborted the program"
			}
			// it waits for locks that a task's call must not
			go s.terminate(end{cause: wire.CauseNone, message: message, grace: -1})
		},
	})
	if err != nil {
		return err
	}
	s.k.mu.Lock()
	s.pmi = m
	s.k.mu.Unlock()
	return nil
}

// exchange sends what this node's tasks put and waits for what all did.
func (m *meeting) exchange(n int, mine map[string]string) (map[string]string, error) {
	p := m.s.l.Program.PMI
	if p.Size == len(m.s.l.Program.Tasks) { // all are here
		return maps.Clone(mine), nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(meetAgain)
	defer again.Stop()
	for {
		m.s.k.send(wire.TypeMeet, wire.Meet{Key: m.s.key, N: n}, text)
		for {
			m.mu.Lock()
			a, ok := m.answers[n]
			changed := m.changed
			m.mu.Unlock()
			if ok {
				return a.all, a.err
			}
			select {
			case <-changed:
				continue
			case <-m.over:
				return nil, errors.New("the step has ended")
			case <-again.C:
			}
			break
		}
	}
}

// met takes srun's answer.
func (r requests) met(m wire.Meet, payload []byte) {
	k := r.k
	k.mu.Lock()
	s := k.steps[m.Key]
	var p *meeting
	if s != nil {
		p = s.pmi
	}
	k.mu.Unlock()
	if p == nil {
		return
	}
	a := answer{}
	if m.Err != "" {
		a.err = errors.New(m.Err)
	} else if err := json.Unmarshal(payload, &a.all); err != nil {
		a.err = err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.answers, m.N-2) // nobody asks for it any more
	p.answers[m.N] = a
	close(p.changed)
	p.changed = make(chan struct{})
}

// close ends the service with the step.
func (m *meeting) close() {
	if m == nil {
		return
	}
	m.ended.Do(func() { close(m.over) })
	m.node.Close()
}
