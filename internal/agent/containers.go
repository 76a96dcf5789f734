package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/agent/backoff"
	"bireme.dev/bireme/internal/agent/docker"
	"bireme.dev/bireme/internal/agent/standin"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// containers is the agent's part in running containers: it tells stand-ins what only the node knows, completes the ends
// they leave, and removes what has ended. When it is called: contain before a launch goes to the keeper; amend for each
// end; sweep after each keeper's hello and now and then, for whatever a crash of agent, keeper or engine left: an
// engine continues making a container whose stand-in was killed while it waited for it. It tolerates an engine that is
// away: what could not be removed is tried again.
type containers struct {
	log    *slog.Logger
	engine *docker.Client
	socket string
	dir    string // of the stand-ins' directories
	node   string // what containers of this agent are labeled with
	alive  func(key string) bool
	every  time.Duration // between two sweeps

	images *images
	makers *makers

	mu      sync.Mutex
	gone    map[string]bool // keys of containers to be removed
	all     bool            // all that is not alive is to be removed
	wake    chan struct{}
	ours    map[string]bool     // keys of launches in containers of which something may be left in a directory
	pending map[wire.Key]string // launches that may not run yet, with what was told of them
	watch   chan struct{}
}

// sweepEvery is often enough for what is rare and does no harm.
const sweepEvery = 10 * time.Minute

func newContainers(log *slog.Logger, opt *Options, node string, l *ledger) *containers {
	socket := opt.Engine
	if !filepath.IsAbs(socket) { // none, or a maker's name
		socket = docker.Socket()
	}
	h := fnv.New32a()
	h.Write([]byte(opt.Dir))
	c := &containers{
		log: log, engine: docker.New(socket), socket: socket, dir: filepath.Join(opt.Dir, "containers"),
		node: node + "-" + strconv.FormatUint(uint64(h.Sum32()), 36), gone: map[string]bool{}, wake: make(chan struct{}, 1),
		pending: map[wire.Key]string{}, watch: make(chan struct{}, 1), every: sweepEvery,
	}
	c.makers = newMakers(opt, socket, c.node)
	c.ours = map[string]bool{}
	for _, dir := range []string{c.dir, c.makers.run} { // an agent before this one launched them
		list, _ := os.ReadDir(dir) // most nodes have none
		for _, e := range list {
			c.ours[e.Name()] = true
		}
	}
	c.images = newImages(log, c.engine, c.makers, opt.Dir)
	c.alive = l.holds
	l.forgot = c.forget
	return c
}

// note remembers a launch in a container. Other launches, of which there may be thousands a second, cost no look at a
// disk.
func (c *containers) note(k wire.Key) {
	c.mu.Lock()
	c.ours[k.String()] = true
	c.mu.Unlock()
}

func (c *containers) noted(k wire.Key) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ours) > 0 && c.ours[k.String()]
}

// contain makes of a launch in a container one of its stand-in.
func (a *Agent) contain(l *wire.Launch) {
	c := l.Container
	c.Engine, c.Dir, c.Node = a.containers.socket, a.containers.dir, core.NodeName(a.containers.node)
	c.Init = beside("bireme-init")
	c.Args, c.Limits = l.Program.Argv, l.Limits
	c.Devices, c.GPUs = a.machine.ShownDevices(l)
	c.Caps = a.containerCaps()
	c.Publish = a.publishAt()
	if c.Bounded {
		a.mu.Lock()
		c.Within, c.NetRaw = a.settings.Volumes, a.settings.NetRaw
		a.mu.Unlock()
	}
	if !c.Join {
		a.containers.expect(l.Key)
	}
	// What bounds the job bounds the container, not its stand-in.
	l.Limits = wire.Limits{}
	l.Program.Argv, l.Program.LoginEnv, l.Program.Nice = []string{beside("bireme-container")}, false, 0
	for i := range l.Program.Tasks {
		l.Program.Tasks[i].CPUs = ""
	}
}

// containerCaps are the capabilities of root in users' containers.
func (a *Agent) containerCaps() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.settings.ContainerCaps == nil { // a server from before there was such a setting
		return core.ContainerCaps
	}
	return a.settings.ContainerCaps
}

// beside finds a program of ours beside this one, then in PATH. What is not found is named as it should be, for the
// launch to fail on.
func beside(name string) string {
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), name)
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			return path
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		if path, err = filepath.Abs(path); err == nil {
			return path
		}
	}
	return name
}

// amend completes the end of a step that ran in a container and has that removed. It reports whether x changed.
func (c *containers) amend(x *wire.Exited) bool {
	if !c.noted(x.Key) {
		return false
	}
	if c.makers.made(x.Key) {
		c.images.nudge()
		return c.makers.amend(x)
	}
	folder := standin.Folder(c.dir, x.Key)
	if _, err := os.Stat(folder); err != nil {
		return false
	}
	c.mu.Lock()
	c.gone[x.Key.String()] = true
	delete(c.pending, x.Key)
	c.mu.Unlock()
	c.nudge()
	e, err := standin.ReadEnd(folder)
	if err != nil {
		c.log.Warn("end of a container", "job", x.Key.Job, "step", x.Key.Step, "err", err)
	}
	if e == nil {
		return false
	}
	c.images.used(e.ImageID)
	e.Amend(x)
	return true
}

// exited completes an end as the keeper told it.
func (a *Agent) exited(x wire.Exited, f wire.Frame) (wire.Exited, wire.Frame) {
	if a.containers.amend(&x) {
		f.Header, _ = json.Marshal(x) // plain fields: cannot fail
	}
	return x, f
}

// forget drops what was kept of ends that the server has.
func (c *containers) forget(keys []wire.Key) {
	for _, k := range keys {
		if !c.noted(k) {
			continue
		}
		if err := errors.Join(os.RemoveAll(standin.Folder(c.dir, k)), c.makers.forget(k)); err != nil {
			c.log.Warn("folder of a container", "job", k.Job, "step", k.Step, "err", err)
			continue // the next sweep removes it
		}
		c.mu.Lock()
		delete(c.ours, k.String())
		c.mu.Unlock()
	}
}

// sweep has everything removed that no living launch owns.
func (c *containers) sweep() {
	if err := c.makers.keep(c.alive); err != nil {
		c.log.Warn("folders of containers", "err", err)
	}
	c.mu.Lock()
	c.all = true
	c.mu.Unlock()
	c.nudge()
}

func (c *containers) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run removes what has ended until ctx ends.
func (c *containers) run(ctx context.Context) error {
	defer c.makers.close()
	defer c.engine.Close()
	back := backoff.Backoff{Least: 100 * time.Millisecond, Most: 30 * time.Second}
	quiet := false
	again := time.NewTicker(c.every)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
			c.sweep()
		case <-c.wake:
		}
		for {
			err := c.clear(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if err == nil {
				back.Reset()
				quiet = false
				break
			}
			if !quiet {
				c.log.Warn("containers are not cleared away", "err", err)
				quiet = true
			}
			if !back.Wait(ctx) {
				return nil
			}
		}
	}
}

// clear removes what is known to be over. A node on which no container ever ran does not ask for an engine.
func (c *containers) clear(ctx context.Context) error {
	if _, err := os.Stat(c.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	c.mu.Lock()
	all := c.all
	names := map[string]string{} // what to remove, by key
	for key := range c.gone {
		names[key] = standin.Name(c.node, key)
	}
	c.mu.Unlock()
	if all {
		list, err := c.engine.List(ctx, docker.LabelNode, c.node)
		if err != nil {
			return err
		}
		for _, l := range list {
			if key := l.Labels[docker.LabelKey]; !c.alive(key) {
				names[key] = l.ID
			}
		}
		if err := c.clearFolders(); err != nil {
			return err
		}
	}
	var g errgroup.Group // one that cannot be removed keeps no other
	g.SetLimit(4)
	for key, id := range names {
		g.Go(func() error {
			if err := c.engine.Remove(ctx, id); err != nil {
				return fmt.Errorf("remove container of %s: %w", key, err)
			}
			c.mu.Lock()
			delete(c.gone, key)
			c.mu.Unlock()
			return nil
		})
	}
	err := g.Wait()
	if err == nil && all {
		c.mu.Lock()
		c.all = false
		c.mu.Unlock()
	}
	return err
}

// clearFolders removes directories of launches that nobody knows.
func (c *containers) clearFolders() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	for _, e := range list {
		if !c.alive(e.Name()) {
			if err := os.RemoveAll(filepath.Join(c.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// inside is the first process of a launch's container, or of the launch where it has none.
func (c *containers) inside(ctx context.Context, k wire.Key, pid int) (int, error) {
	if !c.noted(k) || c.makers.made(k) {
		return pid, nil
	}
	state, err := c.engine.State(ctx, standin.Name(c.node, k.String()))
	if err != nil || state.Pid == 0 {
		return 0, errors.Join(errors.New("no container"), err)
	}
	return state.Pid, nil
}

// suspend stops or continues the container of a job, whose stand-in the keeper stops.
func (c *containers) suspend(ctx context.Context, s wire.Suspend) {
	for _, step := range []string{wire.BatchStep, wire.ExternStep} {
		key := wire.Key{Job: s.Job, Attempt: s.Attempt, Step: step}
		if _, err := os.Stat(standin.Folder(c.dir, key)); err != nil {
			continue
		}
		if err := c.engine.Pause(ctx, standin.Name(c.node, key.String()), !s.Resume); err != nil {
			c.log.Warn("pause a container", "job", s.Job, "err", err)
		}
	}
}

// publishAt is the address that ports of containers are found at: loopback, unless the settings ask for more.
func (a *Agent) publishAt() string {
	a.mu.Lock()
	how := a.settings.Publish
	a.mu.Unlock()
	switch how {
	case "all":
		return ""
	case "network":
		if ip := net.ParseIP(a.opt.Addr); ip != nil {
			return ip.String()
		}
	}
	return "127.0.0.1"
}
