// Package mpi is how the tasks of an MPI step find those on other nodes: it serves PMI or PMIx to the tasks of a node,
// and exchanges what they put with the other nodes by way of srun, which hears each node and tells all.
package mpi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"time"

	"bireme.dev/bireme/internal/step/pmi"
	"bireme.dev/bireme/internal/step/pmix"
	"bireme.dev/bireme/internal/wire"
)

// Config is a step on one node.
type Config struct {
	Launch *wire.Launch
	Tasks  []wire.Task
	Send   func(m wire.Meet, payload []byte) // to srun; it may be lost
	Abort  func(message string)              // a task wants the whole step to end
}

// Service serves the tasks of a step on one node.
type Service struct {
	cfg  Config
	pmi  *pmi.Node  // nil: it is PMIx
	pmix *pmix.Node // nil: it is PMI

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

// repeatAfter is after how long a node tells its part again: a message may be lost with the agent that carried it.
const repeatAfter = 5 * time.Second

// Open begins to serve what the step's tasks want; nil if nothing.
func Open(cfg Config) (*Service, error) {
	s := &Service{cfg: cfg, answers: map[int]answer{}, changed: make(chan struct{}), over: make(chan struct{})}
	var err error
	switch p := &cfg.Launch.Program; {
	case p.PMIx != nil:
		s.pmix, err = s.openPMIx(p.PMIx)
	case p.PMI != nil:
		s.pmi, err = s.openPMI(p.PMI)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Service) openPMI(p *wire.PMI) (*pmi.Node, error) {
	ranks := make([]int32, len(s.cfg.Tasks))
	for i := range s.cfg.Tasks {
		ranks[i] = int32(s.cfg.Tasks[i].Rank)
	}
	mapping := ""
	if len(p.Counts) > 0 {
		mapping = pmi.Mapping(p.Counts)
	}
	return pmi.New(pmi.Config{
		Job: p.Job, Size: p.Size, Ranks: ranks, Mapping: mapping, Exchange: s.exchange,
		Abort: func(_ int32, _ int, message string) {
			if message == "" {
				message = "a task aborted the program"
			}
			go s.cfg.Abort(message) // it waits for locks that a task's call must not
		},
	})
}

func (s *Service) openPMIx(p *wire.PMIx) (*pmix.Node, error) {
	cfg := pmix.Config{
		Job: uint32(s.cfg.Launch.Key.Job), Namespace: p.Namespace, UID: s.cfg.Launch.Identity.UID, Size: p.Size, Here: -1,
		Send: func(m pmix.Message) {
			s.cfg.Send(wire.Meet{Key: s.cfg.Launch.Key, Op: m.Op, Nodes: m.Nodes, Err: m.Err}, m.Payload)
		},
		Abort: func(rank int32, code int, message string) {
			go func() {
				s.cfg.Send(wire.Meet{Key: s.cfg.Launch.Key, Op: wire.MeetAbort, N: code}, nil)
				s.cfg.Abort(fmt.Sprintf("task %d aborted the program with status %d: %s", rank, code, message))
			}()
		},
	}
	for i, node := range p.Nodes {
		cfg.Nodes = append(cfg.Nodes, pmix.Placement{Name: string(node.Name), Ranks: node.Ranks})
		// The parts of a heterogeneous step may share a node.
		if node.Name == s.cfg.Launch.Key.Node && len(node.Ranks) > 0 && len(s.cfg.Tasks) > 0 &&
			int(node.Ranks[0]) == s.cfg.Tasks[0].Rank {
			cfg.Here = i
		}
	}
	if cfg.Here < 0 {
		return nil, fmt.Errorf("PMIx: node %s is not one of the step", s.cfg.Launch.Key.Node)
	}
	return pmix.New(cfg)
}

// Task is what a task must find in its environment, and a file that it inherits as descriptor fd, if any. The caller
// has the file until Close.
func (s *Service) Task(local, fd int) (env []string, file *os.File) {
	if s.pmix != nil {
		return s.pmix.Env(int32(s.cfg.Tasks[local].Rank)), nil
	}
	return s.pmi.Env(local, fd), s.pmi.Socket(local)
}

// exchange sends what this node's tasks put and waits for what all did.
func (s *Service) exchange(n int, mine map[string]string) (map[string]string, error) {
	l := s.cfg.Launch
	if l.Program.PMI.Size == len(l.Program.Tasks) { // all are here
		return maps.Clone(mine), nil
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	again := time.NewTicker(repeatAfter)
	defer again.Stop()
	for {
		s.cfg.Send(wire.Meet{Key: l.Key, N: n}, text)
		for {
			s.mu.Lock()
			a, ok := s.answers[n]
			changed := s.changed
			s.mu.Unlock()
			if ok {
				return a.all, a.err
			}
			select {
			case <-changed:
				continue
			case <-s.over:
				return nil, errors.New("the step has ended")
			case <-again.C:
			}
			break
		}
	}
}

// Deliver takes what srun says.
func (s *Service) Deliver(m wire.Meet, payload []byte) {
	if s == nil {
		return
	}
	if s.pmix != nil {
		s.pmix.Deliver(pmix.Message{Op: m.Op, Err: m.Err, Payload: payload})
		return
	}
	if m.Op != "" {
		return
	}
	a := answer{}
	if m.Err != "" {
		a.err = errors.New(m.Err)
	} else if err := json.Unmarshal(payload, &a.all); err != nil {
		a.err = err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.answers, m.N-2) // nobody asks for it any more
	s.answers[m.N] = a
	close(s.changed)
	s.changed = make(chan struct{})
}

// Close ends the service with the step.
func (s *Service) Close() {
	if s == nil {
		return
	}
	s.ended.Do(func() { close(s.over) })
	if s.pmi != nil {
		s.pmi.Close()
	}
	if s.pmix != nil {
		s.pmix.Close()
	}
}
