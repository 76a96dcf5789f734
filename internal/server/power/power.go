package power

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/nice"
)

// Programs are run with a host list for an argument; an empty one is not run.
type Programs struct {
	Suspend, Resume, Fail string
	Env                   []string
}

// programTimeout is how long a program may take. As Slurm's are, they are meant to start something, not to wait for it.
const programTimeout = 5 * time.Minute

// maxText bounds what is told of a program that fails.
const maxText = 200

// way is where a node is on its way to.
type way uint8

const (
	nowhere way = iota
	down
	up
)

// Switch follows nodes on their way to sleep and back. New makes one; Publish feeds it; Run runs the programs.
type Switch struct {
	programs func() Programs
	engine   *engine.Engine
	log      *slog.Logger
	wake     chan struct{} // capacity 1: something is to be run

	mu                    sync.Mutex
	ways                  map[core.NodeName]way // of nodes that are on one; the program was run, or is in a list
	suspend, resume, fail []string
}

// New makes a switch.
func New(programs func() Programs, e *engine.Engine, log *slog.Logger) *Switch {
	return &Switch{programs: programs, engine: e, log: log, wake: make(chan struct{}, 1), ways: map[core.NodeName]way{}}
}

// Load takes up the nodes that were on their way when the server began: their programs may have been cut off, and are
// run again.
func (s *Switch) Load(snap *state.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range snap.Nodes() {
		s.follow(n)
	}
	s.poke()
}

// Publish takes what a commit changed. It does not block.
func (s *Switch) Publish(p *engine.Published) {
	if p.Reloaded {
		s.Load(p.Snapshot)
		return
	}
	if len(p.Changes.Nodes) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range p.Changes.Nodes {
		s.follow(n)
	}
	s.poke()
}

// follow notes what is to be run for a node. s.mu is held.
func (s *Switch) follow(n *core.Node) {
	was, is := s.ways[n.Name], nowhere
	switch {
	case n.Flags.Has(core.NodePoweringDown):
		is = down
	case n.Flags.Has(core.NodePoweringUp) && n.Offer == "": // an offer's nodes are made by its backend
		is = up
	}
	if s.ways[n.Name] = is; is == nowhere {
		delete(s.ways, n.Name)
	}
	switch {
	case is == was:
	case is == down:
		s.suspend = append(s.suspend, string(n.Name))
	case is == up:
		s.resume = append(s.resume, string(n.Name))
	case was == up && n.Flags.Has(core.NodeDown):
		s.fail = append(s.fail, string(n.Name))
	}
}

func (s *Switch) poke() {
	if len(s.suspend)+len(s.resume)+len(s.fail) == 0 {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run runs programs until ctx ends, and ends those that still run then.
func (s *Switch) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		}
		s.mu.Lock()
		suspend, resume, fail := s.suspend, s.resume, s.fail
		s.suspend, s.resume, s.fail = nil, nil, nil
		s.mu.Unlock()
		p := s.programs()
		running.Go(func() { _ = s.run(ctx, p.Suspend, p.Env, suspend) }) // run has told it
		running.Go(func() { _ = s.run(ctx, p.Fail, p.Env, fail) })
		running.Go(func() {
			if err := s.run(ctx, p.Resume, p.Env, resume); err != nil && ctx.Err() == nil {
				s.failed(ctx, resume, err)
			}
		})
	}
}

// failed tells the engine that nodes were not woken, so that nobody waits for them.
func (s *Switch) failed(ctx context.Context, nodes []string, err error) {
	for _, name := range nodes {
		in := &state.UpdateNode{Node: core.NodeName(name), State: core.VerbResumeFailed, Reason: "ResumeProgram failed: " +
			err.Error(), System: true}
		if _, err := engine.Urgent(ctx, s.engine, in); err != nil {
			s.log.Warn("a node that was not woken is not recorded as such", "node", name, "err", err)
		}
	}
}

// run runs a program for nodes. The error is what it printed first.
func (s *Switch) run(ctx context.Context, program string, env, nodes []string) error {
	if program == "" || len(nodes) == 0 {
		return nil
	}
	slices.SortFunc(nodes, hostlist.Compare)
	list := hostlist.FoldSorted(nodes)
	s.log.Info("power", "program", program, "nodes", list)
	inner, cancel := context.WithTimeout(ctx, programTimeout)
	defer cancel()
	c := exec.CommandContext(inner, program, list)
	c.Dir, c.Env = "/", append(os.Environ(), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := nice.Run(c)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay): // something it started continues: that is what it is for
		return nil
	case inner.Err() != nil && ctx.Err() == nil:
		err = fmt.Errorf("%s did not end within %s", filepath.Base(program), programTimeout)
	default:
		text, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
		if text = strings.ToValidUTF8(text[:min(len(text), maxText)], "?"); text != "" {
			err = errors.New(text)
		}
	}
	s.log.Warn("power", "program", program, "nodes", list, "err", err)
	return err
}
