package emulate

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/nice"
)

// Supervisor keeps an agent process running on each node.
type Supervisor struct {
	Nodes     []Node
	Isolation Isolation
	// Command makes a node's agent. The process must hold the node's pid file (HoldNode) while it lives.
	Command func(Node) *exec.Cmd
	LogDir  string
	Log     *slog.Logger
	// Failed learns of an agent that ended, with the last words of its log.
	Failed func(Node, error)
}

// Waits between two starts of an agent that does not stay.
const (
	firstWait = 100 * time.Millisecond
	mostWait  = 5 * time.Second
	healthy   = 10 * time.Second // an agent that lived so long begins again
)

// HoldNode takes a node's pid file for the calling agent.
func HoldNode(dir string) (*process.Lock, error) {
	return process.TakeLock(filepath.Join(dir, pidFile))
}

// Run starts the agents and starts again those that die, until ctx ends. It leaves them running then: Stop ends them.
// An agent that a dead supervisor left behind is replaced; what its keeper holds continues.
func (s *Supervisor) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, n := range s.Nodes {
		g.Go(func() error { return s.keep(ctx, n) })
	}
	return g.Wait()
}

func (s *Supervisor) keep(ctx context.Context, n Node) error {
	wait := firstWait
	for {
		began := time.Now()
		err := s.once(ctx, n)
		if ctx.Err() != nil {
			return nil
		}
		s.Log.Warn("an agent ended", "node", n.Name, "err", err)
		if s.Failed != nil {
			s.Failed(n, err)
		}
		if time.Since(began) > healthy {
			wait = firstWait
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		wait = min(2*wait, mostWait)
	}
}

// once runs an agent to its end, or to the end of ctx, which the agent outlives.
func (s *Supervisor) once(ctx context.Context, n Node) error {
	if err := EndAgent(ctx, n.Dir); err != nil {
		return err
	}
	logName := filepath.Join(s.LogDir, "agent-"+string(n.Name)+".log")
	out, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o640)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := out.Chmod(0o640); err != nil { // an older version made it for everybody
		return err
	}
	from, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := s.Command(n)
	cmd.Stdout, cmd.Stderr = out, out
	if n.Emulated() {
		cmd.SysProcAttr = s.Isolation.attr()
	} else {
		cmd.SysProcAttr = None.attr()
	}
	// What an agent starts, the node's programs and jobs, must not have the server's share of the processors.
	if err := nice.Start(cmd); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // lives as long as the agent
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return fmt.Errorf("%v: %s", err, lastWords(logName, from))
	}
}

// lastWords is the last line written to a log after an offset.
func lastWords(name string, from int64) string {
	f, err := os.Open(name)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, from, 64<<10))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return last
	}
	return "it said nothing in " + name
}

// EndAgent ends the agent of the node in dir, if one runs. Its keeper is left alone.
func EndAgent(ctx context.Context, dir string) error {
	p, err := process.Holder(filepath.Join(dir, pidFile))
	if err != nil || p == nil {
		return err
	}
	defer p.Close()
	return p.End(ctx, 5*time.Second)
}
