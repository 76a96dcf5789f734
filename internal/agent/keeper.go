package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/backoff"
	"bireme.dev/bireme/internal/agent/process"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/local"
)

// keeperStart is how long a new keeper may take: it cleans up after its predecessor before it listens.
const keeperStart = 90 * time.Second

// KeeperSpec says where a node's keeper lives.
type KeeperSpec struct {
	Program string // bireme-step
	Dir     string
	Socket  string
	Cgroup  string // parent of its cgroups
	Log     string // file for what it has to say
}

// keepKeeper holds the connection to the node's keeper, and starts one when there is none. A keeper outlives the agent:
// it is found again by its socket.
func (a *Agent) keepKeeper(ctx context.Context) error {
	back := backoff.Backoff{Least: 20 * time.Millisecond, Most: 5 * time.Second}
	for {
		c, err := a.opt.Keeper.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			a.log.Error("no keeper", "err", err)
			a.problem(true, "no step keeper: "+err.Error())
		} else {
			back.Reset()
			err = a.listenToKeeper(ctx, c)
			if ctx.Err() != nil {
				return nil
			}
			a.log.Warn("the keeper's connection broke", "err", err)
		}
		if !back.Wait(ctx) {
			return nil
		}
	}
}

// keeperTries is how often a keeper that ends at once is started: one that was killed may keep its lock for a moment.
const keeperTries = 3

// connect returns a connection to the keeper that runs, or to a new one. One that another agent started a moment ago,
// or one that is dying, is waited for.
func (k KeeperSpec) connect(ctx context.Context) (net.Conn, error) {
	deadline := time.Now().Add(keeperStart)
	back := backoff.Backoff{Least: time.Millisecond, Most: 50 * time.Millisecond}
	var gone <-chan struct{} // of the keeper we started
	for tries := 0; ; {
		c, err := net.Dial("unix", k.Socket)
		if err == nil {
			return c, nil
		}
		select {
		case <-gone:
			gone = nil
		default:
		}
		if gone == nil {
			held, err := process.Locked(filepath.Join(k.Dir, "keeper.lock"))
			switch {
			case err != nil:
				return nil, err
			case held: // by somebody who will listen, or end
			case tries == keeperTries:
				return nil, fmt.Errorf("%s ended at once: see %s", k.Program, k.Log)
			default:
				if gone, err = k.start(); err != nil {
					return nil, err
				}
				tries++
			}
		}
		if time.Now().After(deadline) || !back.Wait(ctx) {
			return nil, &core.Error{Code: core.Unavailable, Message: "the keeper does not listen", Err: err}
		}
	}
}

// start runs a keeper in a session of its own. The channel is closed when it ends; the agent is its parent while it
// lives, so somebody must collect it.
func (k KeeperSpec) start() (<-chan struct{}, error) {
	if len(k.Socket) > local.MaxPath {
		return nil, core.Errorf(core.Invalid,
			"%s: %d characters are too many for a socket, the kernel takes %d: choose a shorter folder",
			k.Socket, len(k.Socket), local.MaxPath)
	}
	out, err := os.OpenFile(k.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(k.Program, k.args()...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the keeper: %w", err)
	}
	gone := make(chan struct{})
	go func() { // lives as long as the keeper, which may be longer than we do
		_ = cmd.Wait() // how it ended is in its log
		close(gone)
	}()
	return gone, nil
}

func (k KeeperSpec) args() []string {
	args := []string{"--dir", k.Dir, "--socket", k.Socket}
	if k.Cgroup != "" {
		args = append(args, "--cgroup", k.Cgroup)
	}
	return args
}

// FindKeeper looks for bireme-step beside this program, then in PATH.
func FindKeeper() (string, error) {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), "bireme-step")
		if st, err := os.Stat(beside); err == nil && !st.IsDir() {
			return beside, nil
		}
	}
	p, err := exec.LookPath("bireme-step")
	if err != nil {
		return "", core.Errorf(core.NotFound, "bireme-step is neither beside %s nor in PATH", self)
	}
	return filepath.Abs(p)
}

// findTool returns the user's tool beside this program, or "".
func findTool() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	beside := filepath.Join(filepath.Dir(self), "bireme")
	if st, err := os.Stat(beside); err != nil || st.IsDir() {
		return ""
	}
	return beside
}

// listenToKeeper says hello and takes the keeper's news until the connection breaks.
func (a *Agent) listenToKeeper(ctx context.Context, c net.Conn) error {
	conn := wire.NewConn(c)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Send(wire.TypeHello, wire.AgentHello{Version: wire.KeeperVersion}); err != nil {
		return err
	}
	var beside sync.WaitGroup // ends with the connection
	defer beside.Wait()
	ctx, over := context.WithCancel(ctx)
	defer over()
	defer a.ledger.disconnected(conn)
	for {
		f, err := conn.Next()
		if err != nil {
			return err
		}
		if err := a.fromKeeper(conn, f); err != nil {
			return err
		}
		if f.Type == wire.TypeKeeperHello {
			beside.Go(func() { a.renewKeeper(ctx) })
		}
	}
}

// fromKeeper acts on a frame from the keeper. It must not wait for the server.
func (a *Agent) fromKeeper(conn *wire.Conn, f wire.Frame) error {
	l := a.ledger
	switch f.Type {
	case wire.TypeKeeperHello:
		var h wire.KeeperHello
		if err := f.Decode(&h); err != nil {
			return err
		}
		a.log.Info("keeper", "pid", h.PID, "instance", h.Instance, "containment", h.Containment, "running",
			len(h.Running), "ended", len(h.Ended))
		for _, r := range h.Running { // which of them are containers an agent before this one knew
			a.containers.note(r.Key)
		}
		for i := range h.Ended {
			a.containers.note(h.Ended[i].Key)
			a.containers.amend(&h.Ended[i])
		}
		l.connected(conn, h)
		a.containers.sweep()
		for _, f := range h.Flows {
			a.found(f)
		}
		for _, st := range a.streams() {
			st.again()
		}
	case wire.TypeStarted:
		var s wire.Started
		if err := f.Decode(&s); err != nil {
			return err
		}
		l.started(s.Key, s.PID)
		if st := a.streamOf(s.Key); st != nil {
			st.started()
		}
		// The server is not told: it counts a job as running from its launch, and this would be a third of all news.
	case wire.TypeExited:
		var x wire.Exited
		if err := f.Decode(&x); err != nil {
			return err
		}
		l.exited(a.exited(x, f))
	case wire.TypeMeet:
		var m wire.Meet
		if err := f.Decode(&m); err != nil {
			return err
		}
		if st := a.streamOf(m.Key); st != nil {
			st.meet(m, f.Payload)
		}
	case wire.TypeTaskExited:
		var x wire.TaskExited
		if err := f.Decode(&x); err != nil {
			return err
		}
		if st := a.streamOf(x.Key); st != nil {
			st.taskExited(x)
		}
	case wire.TypeJobDone:
		l.rested()
		l.tell(f.Type, rawHeader(f))
	case wire.TypeLog, wire.TypeUsage, wire.TypeReply:
		var r struct {
			Ref  uint64 `json:"ref"`
			Code string `json:"code"`
		}
		if err := f.Decode(&r); err != nil {
			return err
		}
		if !l.answer(r.Ref, f) && r.Ref != 0 {
			l.tell(f.Type, rawHeader(f), f.Payload)
		}
	case wire.TypeData:
		var d wire.Data
		if err := f.Decode(&d); err != nil {
			return err
		}
		a.stream(d.Key).data(d, f)
	case wire.TypeDataAck:
		var d wire.DataAck
		if err := f.Decode(&d); err != nil {
			return err
		}
		if st := a.streamOf(d.Key); st != nil {
			st.acked(d)
		}
	default:
		a.log.Debug("frame of an unknown type from the keeper", "type", int(f.Type))
	}
	return nil
}

// Shutdown ends a keeper and everything it holds, and returns when it is gone.
func (k KeeperSpec) Shutdown(ctx context.Context) error {
	c, err := net.Dial("unix", k.Socket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return shutdownOn(ctx, c)
}

// Running lists what a keeper runs; nothing where there is no keeper. An agent that is connected to it connects again.
func (k KeeperSpec) Running(ctx context.Context) ([]wire.Running, error) {
	c, err := net.Dial("unix", k.Socket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	conn := wire.NewConn(c)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.Send(wire.TypeHello, wire.AgentHello{Version: wire.KeeperVersion}); err != nil {
		return nil, err
	}
	for {
		f, err := conn.Next()
		if err != nil {
			return nil, fmt.Errorf("the keeper on %s: %w", k.Socket, err)
		}
		if f.Type == wire.TypeKeeperHello {
			var hello wire.KeeperHello
			err := f.Decode(&hello)
			return hello.Running, err
		}
	}
}

// Recover runs a keeper only to clean up after one that died: it kills what is left, notes the ends as lost, and ends.
func (k KeeperSpec) Recover(ctx context.Context) error {
	c, err := k.connect(ctx)
	if err != nil {
		return err
	}
	return shutdownOn(ctx, c)
}

func shutdownOn(ctx context.Context, c net.Conn) error {
	conn := wire.NewConn(c)
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	peer, err := local.Peer(c)
	if err != nil {
		return err
	}
	p, err := process.Open(int(peer.Pid))
	if err != nil || p == nil {
		return err
	}
	defer p.Close()
	if err := conn.Send(wire.TypeHello, wire.AgentHello{Version: wire.KeeperVersion}); err != nil {
		return err
	}
	if err := conn.Send(wire.TypeShutdown, nil); err != nil {
		return err
	}
	for err == nil { // it may have something to say until it closes
		_, err = conn.Next()
	}
	return p.Wait(ctx)
}

// Kill kills a keeper alone, and returns when it is gone. What it held runs on until another keeper or its cgroups'
// end.
func (k KeeperSpec) Kill(ctx context.Context) error {
	c, err := net.Dial("unix", k.Socket)
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	peer, err := local.Peer(c)
	if err != nil {
		return err
	}
	p, err := process.Open(int(peer.Pid))
	if err != nil || p == nil {
		return err
	}
	defer p.Close()
	if err := p.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return p.Wait(ctx)
}
