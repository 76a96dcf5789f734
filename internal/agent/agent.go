package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/agent/backoff"
	"bireme.dev/bireme/internal/agent/environ"
	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/agent/replica"
	"bireme.dev/bireme/internal/agent/socket"
	"bireme.dev/bireme/internal/agent/uplink"
	"bireme.dev/bireme/internal/agent/volumes"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Options are what an agent is told at its start.
type Options struct {
	Dir      string   // certificate, fence, sockets: everything it keeps
	Servers  []string // HOST:PORT or https://HOST:PORT
	Socket   string   // the node's local socket; empty: Dir/agent.sock
	TmpBase  string   // base of jobs' temporary directories, unless the cluster says another; empty: Dir/tmp
	Version  string
	Features []string
	Fleet    string
	Addr     string
	BootID   string // of an emulated node; empty: the machine's
	Emulated bool
	Override hardware.Override
	Keeper   KeeperSpec
	// Engine is the container engine's socket, or apptainer, singularity or enroot. Empty: the first of docker.Sockets
	// that is there, then the first of those programs.
	Engine     string
	OCIRuntime string // of bundles; empty: runc, then crun
	// StopJobs ends the keeper and all it holds when the agent ends.
	StopJobs bool
}

// Agent is the daemon of one node.
type Agent struct {
	opt        Options
	log        *slog.Logger
	id         *identity
	up         *uplink.Uplink
	certs      *renewer
	root       fs.FS
	host       core.Host
	machine    hardware.Machine
	ledger     *ledger
	containers *containers
	socket     *socket.Socket
	env        []byte          // what every step gets: KEY=VALUE NUL
	life       context.Context // of Run, for streams that outlive a session
	work       sync.WaitGroup
	replicas   *replica.Ports
	volumes    volumes.Maker

	mu        sync.Mutex
	settings  wire.NodeSettings
	beat      time.Duration
	last      time.Duration // boottime of the server's last word
	lease     time.Duration // boottime of our last word that the server is known to have heard: fences count from it
	fences    fences
	problems  []wire.Problem
	checkup   chan bool     // the node is to be looked at; true: also by its health program
	rebooting *wire.Reboot  // the machine was told to restart
	refence   chan struct{} // fences have changed
	settled   chan struct{} // a server has given its settings
	writing   sync.Mutex    // of the fence's file
	renewed   renewal       // of the keeper's program, by whoever listens to it
}

// New makes an agent from what Join left in its directory.
func New(ctx context.Context, opt Options, log *slog.Logger) (*Agent, error) {
	if err := os.MkdirAll(opt.Dir, 0o755); err != nil {
		return nil, err
	}
	if opt.Socket == "" {
		opt.Socket = filepath.Join(opt.Dir, "agent.sock")
	}
	if err := checkEngine(opt.Engine); err != nil {
		return nil, err
	}
	if opt.TmpBase == "" {
		opt.TmpBase = filepath.Join(opt.Dir, "tmp")
	}
	// Users' temporary directories are made here, each for its owner alone.
	if err := os.MkdirAll(opt.TmpBase, 0o755); err != nil {
		return nil, err
	}
	if len(opt.Servers) == 0 {
		return nil, core.Errorf(core.Invalid, "an agent needs a server: --server HOST:PORT")
	}
	id, err := loadIdentity(opt.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, core.Errorf(core.Denied, "this node has not joined: give --token and --ca once")
	}
	if err != nil {
		return nil, err
	}
	a := &Agent{
		opt: opt, log: log.With("node", id.name), id: id, root: os.DirFS("/"), beat: 10 * time.Second,
		refence: make(chan struct{}, 1), settled: make(chan struct{}, 1), checkup: make(chan bool, 1),
	}
	a.up = uplink.New(id.tls, opt.Servers)
	a.certs = newRenewer(opt.Dir, id, a.up)
	if a.machine, err = hardware.Detect(ctx, a.root, opt.TmpBase, opt.Override); err != nil {
		return nil, err
	}
	for _, err := range a.machine.Failures {
		a.log.Warn("GPUs not found", "err", err)
	}
	a.host = hardware.HostInfo(a.root)
	a.host.Version, a.host.Addr, a.host.Emulated = opt.Version, opt.Addr, opt.Emulated
	a.host.AgentStart = core.At(time.Now())
	if opt.BootID != "" {
		a.host.BootID = opt.BootID
	}
	if opt.Emulated {
		a.host.Hostname = string(id.name)
	}
	a.ledger = newLedger(a.log)
	a.containers = newContainers(a.log, &opt, string(id.name), a.ledger)
	a.replicas = &replica.Ports{
		Node: id.name, Log: a.log, PID: a.ledger.pid, Inside: a.containers.inside,
		Upgrade: func(ctx context.Context, path string) (net.Conn, error) {
			c, _, err := a.up.Upgrade(ctx, path, "bireme-service")
			return c, err
		},
	}
	a.socket = socket.New(opt.Socket, func(ctx context.Context) (net.Conn, error) {
		c, _, err := a.up.Dial(ctx)
		return c, err
	}, a.log)
	a.env = []byte("BIREME_SERVER=unix:" + opt.Socket + "\x00")
	if tool := findTool(); tool != "" { // scripts made from YAML make steps with it, whatever their PATH
		a.env = append(a.env, "BIREME_EXE="+tool+"\x00"...)
	}
	a.recallFence()
	return a, nil
}

// Run is the agent's life. It ends with ctx; the keeper and what it holds continue, unless Options say otherwise.
func (a *Agent) Run(ctx context.Context) error {
	a.life = ctx
	l, err := a.socket.Listen() // before the first job could want it
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.socket.Serve(ctx, l) })
	g.Go(func() error { return a.keepKeeper(ctx) })
	g.Go(func() error { return a.keepServer(ctx) })
	g.Go(func() error { return a.renewCertificates(ctx) })
	g.Go(func() error { return a.watchFences(ctx) })
	g.Go(func() error { return a.sample(ctx) })
	g.Go(func() error { return a.watchHealth(ctx) })
	g.Go(func() error { return a.containers.run(ctx) })
	g.Go(func() error { return a.containers.tellPending(ctx, a.ledger) })
	g.Go(func() error { return a.containers.images.run(ctx) })
	err = g.Wait()
	a.volumes.Wait()
	a.work.Wait()
	if a.opt.StopJobs {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, a.opt.Keeper.Shutdown(ctx))
	}
	return err
}

// keepServer holds a session with a server. Until the first keeper has told what runs, there is nothing to say.
func (a *Agent) keepServer(ctx context.Context) error {
	select {
	case <-a.ledger.known:
	case <-ctx.Done():
		return nil
	}
	back := backoff.Backoff{Least: 50 * time.Millisecond, Most: 5 * time.Second}
	quiet := false
	for {
		if a.id.ended() { // the renewal has its own rhythm; without it nobody would listen to us
			if err := a.certs.renew(ctx); err != nil && !quiet {
				a.log.Warn("the node's certificate has run out, and no server gives another one", "err", err)
				quiet = true
			}
		}
		welcomed, err := a.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if welcomed {
			back.Reset()
			quiet = false
			a.log.Info("disconnected", "err", err)
		} else if !quiet {
			a.log.Warn("no server", "err", err)
			quiet = true // one line for an hour's absence
		}
		if !back.Wait(ctx) {
			return nil
		}
	}
}

// settle takes the cluster's settings.
func (a *Agent) settle(w *wire.Welcome) {
	a.mu.Lock()
	a.settings = w.Settings
	if w.Heartbeat > 0 {
		a.beat = w.Heartbeat
	}
	a.fences.set(w.Fence, w.Fences)
	a.mu.Unlock()
	a.certs.settle(w.Certs)
	a.socket.SetLimit(w.Settings.Connections)
	a.containers.images.settle(w.Settings.ImageCache, w.Settings.Prefetch)
	select {
	case a.settled <- struct{}{}:
	default:
	}
	a.checkHealth(false)
	a.heard()
}

func (a *Agent) heartbeat() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.beat
}

// heard notes a word from the server.
func (a *Agent) heard() {
	a.mu.Lock()
	a.last = hardware.BootTime()
	a.mu.Unlock()
}

// silence is how long the server has said nothing.
func (a *Agent) silence() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return hardware.BootTime() - a.last
}

// dropUnenforceable takes out limits this node cannot hold: the node's record says so, and its jobs run all the same.
func (a *Agent) dropUnenforceable(l *wire.Limits) {
	a.ledger.mu.Lock()
	missing := a.machine.MissingLimits(&a.ledger.keeper)
	a.ledger.mu.Unlock()
	for _, name := range missing {
		switch name {
		case "memory":
			l.Memory, l.Swap = 0, 0
		case "cpuset":
			l.CPUs = ""
		case "pids":
			l.PIDs = 0
		case "devices":
			l.Devices, l.DenyDevices = nil, nil
		}
	}
}

// localize adds to a launch what only the node knows.
func (a *Agent) localize(l *wire.Launch) {
	a.mu.Lock()
	s := a.settings
	a.mu.Unlock()
	if s.ConstrainCPUs && l.Limits.CPUs != "" {
		l.Limits.CPUs = a.machine.CPUSet(l.Limits.CPUs)
	} else {
		l.Limits.CPUs = ""
	}
	if !s.ConstrainMem {
		l.Limits.Memory, l.Limits.Swap = 0, 0
	}
	if s.ConstrainDevices {
		l.Limits.DenyDevices = a.machine.GPUs.Denied(l.Gres)
	} else {
		l.Limits.Devices, l.Limits.DenyDevices = nil, nil
	}
	if l.Limits.PIDs == 0 {
		l.Limits.PIDs = s.MaxPids
	}
	for i := range l.Program.Tasks { // CPUs of an emulated node are nowhere
		if t := &l.Program.Tasks[i]; t.CPUs != "" && !a.host.Emulated {
			t.CPUs = a.machine.CPUSet(t.CPUs)
		} else {
			t.CPUs = ""
		}
	}
	if l.Container != nil {
		a.containers.note(l.Key)
		l.Container.Maker, l.Container.Program = a.containers.makers.choose(l.Container)
	}
	a.machine.RenameUnits(l, len(l.Limits.DenyDevices) > 0 || l.StandsIn())
	switch {
	case l.StandsIn():
		a.contain(l)
	case l.Container != nil:
		a.launchByMaker(l)
		fallthrough
	default:
		a.dropUnenforceable(&l.Limits)
	}
	if l.Time.KillGrace == 0 {
		l.Time.KillGrace = s.KillWait
	}
	if l.Time.Unkillable == 0 {
		l.Time.Unkillable = s.UnkillableAfter
	}
	if l.Stdio.KeepTail == 0 {
		l.Stdio.KeepTail = s.LogTail
	}
	l.Stdio.Bounds = wire.LogBounds{Most: s.LogPerJob, MinFree: s.MinFreeDisk, Rate: s.LogRate, Alone: s.LogRateAlone}
	if len(s.Prolog) > 0 && l.Hooks.Prolog == nil {
		l.Hooks.Prolog = programs(s.Prolog)
	}
	if len(s.Epilog) > 0 && l.Hooks.Epilog == nil {
		l.Hooks.Epilog = programs(s.Epilog)
	}
	l.Program.TaskProlog = append(slices.Clip(s.TaskProlog), l.Program.TaskProlog...)
	l.Program.TaskEpilog = append(slices.Clip(l.Program.TaskEpilog), s.TaskEpilog...)
	if l.Hooks.Timeout == 0 {
		l.Hooks.Timeout = s.PrologTimeout
	}
	if l.TmpBase == "" {
		l.TmpBase = a.opt.TmpBase
		if s.TmpDir != "" {
			l.TmpBase = s.TmpDir
		}
	}
	l.Env = environ.Drop(l.Env, "BIREME_SERVER", "BIREME_CA", "BIREME_EXE")
	if l.Container == nil { // the node's socket and tools are not inside
		l.Env = append(l.Env, a.env...)
		if argv := l.Program.Argv; len(argv) > 0 && argv[0] == wire.InitInside {
			l.Program.Argv = append([]string{beside("bireme-init")}, argv[1:]...)
		}
	}
}

func programs(list []string) [][]string {
	out := make([][]string, len(list))
	for i, p := range list {
		out[i] = []string{p}
	}
	return out
}

// problem tells the server something an operator should know, now or when it is back.
func (a *Agent) problem(drain bool, reason string) {
	a.complain(wire.Problem{Drain: drain, Reason: reason})
}

func (a *Agent) complain(p wire.Problem) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, have := range a.problems {
		if have == p {
			return
		}
	}
	if len(a.problems) < 16 {
		a.problems = append(a.problems, p)
	}
	a.ledger.mu.Lock()
	s := a.ledger.up
	a.ledger.mu.Unlock()
	if s != nil {
		s.begin(func() { a.flushProblems(s) })
	}
}

func (a *Agent) flushProblems(s *session) {
	a.mu.Lock()
	list := a.problems
	a.problems = nil
	a.mu.Unlock()
	for _, p := range list {
		s.send(wire.TypeProblem, p)
	}
}

func (a *Agent) streamOf(k wire.Key) *stepStream {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	return a.ledger.streams[nameOf(k)]
}

func (a *Agent) streams() []*stepStream {
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	var list []*stepStream
	for _, st := range a.ledger.streams {
		list = append(list, st)
	}
	return list
}

// rawHeader passes a header on as it came.
func rawHeader(f wire.Frame) json.RawMessage { return f.Header }
