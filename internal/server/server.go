package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/acmecert"
	"bireme.dev/bireme/internal/server/api"
	"bireme.dev/bireme/internal/server/audit"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/fleet"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/jobcomp"
	"bireme.dev/bireme/internal/server/jobsubmit"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/mail"
	"bireme.dev/bireme/internal/server/power"
	"bireme.dev/bireme/internal/server/reseal"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/services"
	"bireme.dev/bireme/internal/server/sshdoor"
	"bireme.dev/bireme/internal/server/stream"
	"bireme.dev/bireme/internal/server/trigger"
	"bireme.dev/bireme/internal/server/uploads"
	"bireme.dev/bireme/internal/server/vault"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/wire"
)

// Options of a server.
type Options struct {
	Config  *config.Config
	Version string
	Log     *slog.Logger
	Ready   func(Info)                     // called once, when callers and agents are let in
	Store   store.Store                    // nil: the one of Config.Server.Store, opened and closed by Run
	Reload  func() (*config.Config, error) // reads the settings again; nil: there is nothing to read
	Hangup  <-chan os.Signal               // each has the settings read again
	Record  io.Writer                      // gets every input with its time, for `bireme simulate --replay`; may be nil
}

// Info tells where a server is reached.
type Info struct {
	API    string // URL of the HTTP API; empty: none
	Agents string // HOST:PORT of the agents' door; empty: none
	Dstack string // URL for dstack's clients; empty: none
	Socket string
	CAFile string
	SSH    string // HOST:PORT of the SSH listener; empty: none
}

// Run is a server's life. It returns nil when ctx ends and everything was closed in order.
func Run(ctx context.Context, o Options) (err error) {
	cfg := o.Config
	if err := cfg.Check(); err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return fmt.Errorf("the server's folder: %w", err)
	}
	if err := checkFree(cfg); err != nil {
		return err
	}
	name, err := holder(cfg)
	if err != nil {
		return err
	}
	st := o.Store
	if st == nil {
		if st, err = openStore(ctx, cfg.Store()); err != nil {
			return fmt.Errorf("open the store: %w", err)
		}
		defer func() { err = errors.Join(err, st.Close()) }()
	}
	if err := checkSeals(ctx, st, cfg); err != nil {
		return err
	}
	if err := checkCluster(ctx, st, cfg); err != nil {
		return err
	}
	var once sync.Once
	logs, usage, files := logstore.New(cfg.Logs()), samples.New(cfg.Samples()), uploads.New(cfg.Uploads())
	defer func() { err = errors.Join(err, logs.Close(), usage.Close()) }()
	logs.KeepTimes()
	if ready := o.Ready; ready != nil {
		o.Ready = func(i Info) { once.Do(func() { ready(i) }) }
	}
	doors, others := new(ports), &members{store: st, self: name, cluster: cfg.Cluster, log: o.Log}
	defer func() { err = errors.Join(err, doors.close()) }()
	if engineConfig(cfg).Lease > 0 {
		telling, stop := context.WithCancel(ctx)
		var told sync.WaitGroup
		told.Go(func() { others.run(telling) })
		defer told.Wait()
		defer stop()
	}
	began := time.Now()
	for yield := time.Duration(0); ; {
		s := &server{
			Options: o, holder: name, store: st, logs: logs, samples: usage, uploads: files,
			streams: stream.New(stream.Patience{}), ports: doors, members: others, began: began, yield: yield,
		}
		s.live.Store(o.Config)
		s.bound(o.Config)
		err := s.run(ctx)
		if !errors.Is(err, engine.ErrLeadershipLost) || ctx.Err() != nil {
			return err
		}
		o.Log.Warn("this server leads no more; it waits for its turn again", "err", err)
		yield = 0
		if engine.SteppedDown(err) { // another one is to lead
			yield = 2 * o.Config.Timers.Lease.D()
		}
		o.Config = s.live.Load()
	}
}

// bound has the limits of a configuration hold for what is kept of jobs' output.
func (s *server) bound(cfg *config.Config) {
	l := &cfg.Limits
	s.logs.SetBounds(logstore.Bounds{
		PerJob: int64(l.LogPerJob), PerUser: int64(l.LogPerUser),
		MinFree: int64(l.MinFreeDisk),
	})
	s.samples.SetMinFree(int64(l.MinFreeDisk))
}

// server is one that runs.
type server struct {
	Options
	holder    string // who it is to the lease
	store     store.Store
	engine    *engine.Engine
	seals     *seal.Ring
	sealed    sealCheck
	rotator   *reseal.Rotator
	acme      *acmecert.Manager // nil: the settings name no host for it
	authority *ca.Authority
	logs      *logstore.Store
	samples   *samples.Store
	uploads   *uploads.Store
	streams   *stream.Exchange
	hub       *hub.Hub
	mail      *mail.Sender
	power     *power.Switch
	triggers  *trigger.Watcher
	plugins   *jobsubmit.Plugins
	completed *jobcomp.Writer
	api       *api.API
	services  *services.Services
	audit     *audit.Log
	doors     []*door
	tunnels   *door // for agents whose connections are carried to us
	fleets    *fleet.Fleets

	ssh         *sshdoor.Door // nil: there is none
	sshListener net.Listener
	inside      *inside // by which it calls the API

	ports   *ports
	members *members
	began   time.Time
	yield   time.Duration // how long others may lead first

	live      atomic.Pointer[config.Config] // the settings that hold
	conns     limit.Conns
	reloading sync.Mutex
}

func (s *server) run(ctx context.Context) error {
	ec := engineConfig(s.Config)
	ec.Record, ec.Holder, ec.Clock, ec.Yield = s.Record, s.holder, bootTime, s.yield
	mark := newJobMark(s.Config.Dir, s.Log)
	ec.LeastJob = mark.least
	ec.Check = s.sealed.check
	s.engine = engine.New(s.store, ec, s.Log)
	// The engine outlives ctx: what is under way when it ends is still committed.
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	ended := make(chan error, 1)
	go func() { ended <- s.engine.Run(engineCtx) }()
	finish := func(err error) error {
		stopEngine()
		return errors.Join(err, <-ended)
	}
	after, err := new(follower).awaitLead(ctx, s, ended)
	var left sync.WaitGroup
	left.Go(after)
	defer left.Wait()
	switch {
	case errors.Is(err, errEngineEnded):
		return fmt.Errorf("engine: %w", <-ended)
	case err != nil:
		return finish(nil)
	}
	if err := s.open(ctx); err != nil {
		return finish(err)
	}
	g, running := errgroup.WithContext(ctx)
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	for _, d := range s.doors {
		g.Go(d.serve)
	}
	if s.ssh != nil {
		g.Go(func() error { return s.ssh.Serve(s.sshListener) })
	}
	g.Go(func() error { return s.hub.Run(background) })
	g.Go(func() error { return s.fleets.Run(running) })
	g.Go(func() error { return s.mail.Run(background) })
	g.Go(func() error { return s.power.Run(background) })
	g.Go(func() error { return s.services.Run(background) })
	g.Go(func() error { return s.completed.Run(background) })
	g.Go(func() error { return s.triggers.Run(background) })
	g.Go(func() error { return s.purgeLogs(background) })
	g.Go(func() error { return s.watchLogs(background) })
	g.Go(func() error { return s.keepUploads(background) })
	g.Go(func() error { return s.audit.Run(background) })
	g.Go(func() error { return s.api.KeepTokens(background, s.Config.Retention.Tokens.D()) })
	g.Go(func() error { return s.rotator.Run(background) })
	if s.acme != nil {
		g.Go(func() error { s.acme.Run(background); return nil })
	}
	g.Go(func() error { return mark.run(background, s.engine) })
	g.Go(func() error { return s.reloadOn(background, s.Hangup) })
	g.Go(func() error {
		var lost error
		select {
		case <-running.Done():
		case lost = <-ended:
			ended <- nil
			if lost == nil {
				lost = errors.New("it stopped by itself")
			}
			lost = fmt.Errorf("engine: %w", lost)
		}
		s.close()
		stopBackground()
		return lost
	})
	s.members.takeTerm(s)
	if s.Ready != nil {
		s.Ready(s.info())
	}
	err = finish(g.Wait())
	mark.end(s.engine)
	return err
}

// open makes everything ready and opens the doors.
func (s *server) open(ctx context.Context) (err error) {
	cfg := s.Config
	if err := s.openSeals(ctx); err != nil {
		return err
	}
	if err := writeFile(cfg.CAFile(), s.authority.PEM()); err != nil {
		return err
	}
	if _, err := engine.Do(ctx, s.engine, &state.NodeKey{Do: state.KeyKeep}); err != nil {
		return fmt.Errorf("nodes of an older server: %w", err)
	}
	for _, n := range cfg.CoreNodes() {
		if _, err := engine.Do(ctx, s.engine, &state.PutNode{Node: n}); err != nil {
			return fmt.Errorf("node %s of the config file: %w", n.Name, err)
		}
	}
	if _, err := engine.Do(ctx, s.engine, &state.NumberPolicy{}); err != nil {
		return fmt.Errorf("ids of an older server's policy: %w", err)
	}
	if err := s.ensureQOS(ctx); err != nil {
		return err
	}
	notes, err := s.judge(cfg)
	if err != nil {
		return err
	}
	for _, n := range notes {
		s.Log.Warn("settings", "note", n)
	}
	if s.doors, err = s.openDoors(); err != nil {
		return err
	}
	s.hub = hub.New(hub.Config{
		Cluster: cfg.Cluster, Version: s.Version, Servers: s.agentServers(), Heartbeat: cfg.Timers.Heartbeat.D(),
		SilentAfter: cfg.Timers.SilentAfter.D(), Fence: cfg.Timers.Fence.D(), FenceMargin: cfg.Timers.FenceMargin.D(),
		ContainerWait: cfg.Timers.ContainerWait.D(),
		Rules:         hubRules(cfg), MPI: cfg.Step.MPI, Env: s.env(), Ended: s.endedJob, Stream: s.streams.Key,
		Samples: s.samples, Secret: s.authority.Secret, OpenEnv: openEnv(s.engine, vault.New(s.seals)),
		OpenScript: openScript(s.engine),
		Certs:      func() wire.CertRules { return wire.CertRules{Trust: s.authority.Sum(), Life: s.authority.Life()} },
	}, s.engine, s.store.Blob, s.logs, s.Log)
	s.follow("hub", s.hub.Publish)
	s.hub.Load(s.engine.Snapshot())
	if s.fleets, err = s.newFleets(); err != nil {
		return err
	}
	s.follow("fleets", s.fleets.Publish)
	s.mail = mail.New(s.mailConfig, s.Log)
	s.follow("mail", s.mail.Publish)
	s.follow("uploads", func(p *engine.Published) {
		for _, name := range p.Changes.GoneUsers {
			s.uploads.Forget(name)
		}
	})
	s.mail.Load(s.engine.Snapshot())
	s.power = power.New(s.powerPrograms, s.engine, s.Log)
	s.follow("power", s.power.Publish)
	s.power.Load(s.engine.Snapshot())
	s.triggers = trigger.New(s.engine, s.store, s.triggerConfig, s.Log)
	s.follow("triggers", s.triggers.Publish)
	if err := s.triggers.Load(ctx, s.engine.Snapshot()); err != nil {
		return err
	}
	s.completed = jobcomp.New(s.live.Load, s.Log)
	s.follow("completed", s.completed.Publish)
	s.plugins = &jobsubmit.Plugins{Log: s.Log}
	if err := s.plugins.Use(submitSettings(cfg), false); err != nil { // the server starts, and takes no jobs
		s.Log.Error("jobs are refused until the script of jobs.submit_plugins can be loaded", "err", err)
	}
	if s.audit, err = audit.New(audit.Config{Append: s.appendAudit, Export: cfg.Audit.Export, Log: s.Log}); err != nil {
		return err
	}
	s.services = newServices(services.Deps{Engine: s.engine, Blob: s.store.Blob, Log: s.Log}, s.hub,
		func() *api.API { return s.api })
	s.follow("services", s.services.Publish)
	s.api = api.New(api.Deps{
		Services: s.services, Proxy: s.services.Proxy,
		Config: cfg, Version: s.Version, Engine: s.engine, Store: s.store, Hub: s.hub, Streams: s.streams, Logs: s.logs,
		Samples:   s.samples,
		Authority: s.authority, Servers: s.agentServers(), Reload: s.reload, Partition: s.partition, Fleets: s.fleets,
		Triggers: s.triggers,
		Audit:    s.audit, Log: s.Log, Conns: &s.conns,
		Vault: vault.New(s.seals), Uploads: s.uploads, Dstack: s.door("dstack").url(), SSH: s.sshAddress,
		Seals: s.rotateSeals, CAChanged: s.caChanged, Members: s.members.list, StepDown: s.engine.StepDown,
		HashKey: s.authority.Secret("blob hashes"), Plugins: s.plugins,
	})
	if err := s.openSSH(); err != nil {
		return err
	}
	if s.inside != nil {
		s.doors = append(s.doors, s.newDoor("inside", s.inside, nil))
	}
	for _, d := range append(s.doors, s.tunnels) {
		d.http.Handler = s.api
	}
	return nil
}

// follow subscribes a part to the engine's commits. A panic in one part, caused by what somebody asked for, must not
// end the server: the part is told to look at the whole state with the next commit.
func (s *server) follow(part string, publish func(*engine.Published)) {
	broken := false // publications come one after the other
	s.engine.Subscribe(func(p *engine.Published) {
		defer func() {
			if v := recover(); v != nil {
				broken = true
				hub.LogPanic(s.Log, v, "part", part)
			}
		}()
		if broken {
			p = &engine.Published{Changes: p.Changes, Snapshot: p.Snapshot, Reloaded: true}
		}
		publish(p)
		broken = false
	})
}

func (s *server) mailConfig() mail.Config {
	cfg := s.live.Load()
	return mail.Config{
		Program: cfg.Mail.Program, Domain: cfg.Mail.Domain, User: cfg.Mail.User,
		PerHour: cfg.Limits.MailPerHour, Cluster: cfg.Cluster,
	}
}

func (s *server) triggerConfig() trigger.Config {
	cfg := s.live.Load()
	return trigger.Config{
		Max: cfg.Limits.Triggers, PerUser: cfg.Limits.TriggersPerUser, Users: cfg.Server.UserTriggers,
		Env: []string{"SLURM_CLUSTER_NAME=" + cfg.Cluster, "BIREME_SERVER=unix:" + cfg.Socket()},
	}
}

// submitSettings are what decides on submissions before the engine does.
func submitSettings(cfg *config.Config) jobsubmit.Settings {
	return jobsubmit.Settings{Plugins: cfg.Jobs.SubmitPlugins, Script: cfg.Jobs.Script(), Cluster: cfg.Cluster}
}

// ensureQOS makes the QOS that jobs have which name none, where a site wants one.
func (s *server) ensureQOS(ctx context.Context) error {
	const name = core.QOSName("normal")
	if _, ok := s.engine.Snapshot().QOS(name); ok || !s.Config.Accounting.NormalQOS {
		return nil
	}
	q := &core.QOS{Name: name, Description: "Normal QOS default"}
	if _, err := engine.Do(ctx, s.engine,
		&state.PutQOS{By: core.Identity{User: "root", Admin: true}, QOS: q}); err != nil {
		return fmt.Errorf("QOS %s: %w", name, err)
	}
	return nil
}

// endedJob finds a job in the history.
func (s *server) endedJob(ctx context.Context, id core.JobID) (*core.Job, error) {
	list, err := s.store.Jobs(ctx, store.JobQuery{IDs: []core.JobID{id}})
	for _, j := range list {
		if j.ID == id {
			return j, err
		}
	}
	return nil, err
}

// close stops in order: no new calls, those under way to their end, agents, streams.
func (s *server) close() {
	ctx, cancel := context.WithTimeout(context.Background(), s.Config.Timers.Grace.D())
	defer cancel()
	if s.ssh != nil {
		s.ssh.Close()
	}
	s.api.Close()
	s.streams.Close()
	s.services.Proxy.Close()
	g := errgroup.Group{}
	for _, d := range append(s.doors, s.tunnels) {
		g.Go(func() error { return d.shutdown(ctx) })
	}
	g.Go(func() error { s.hub.Shutdown(ctx); return nil })
	if err := g.Wait(); err != nil {
		s.Log.Warn("calls were cut at stop", "err", err)
	}
}

func seconds(d config.Duration) core.Seconds { return core.Seconds(d.D() / time.Second) }

func engineConfig(cfg *config.Config) engine.Config {
	enforced, _ := cfg.Accounting.Enforced() // they have been checked
	rule, _ := core.ParseRule(cfg.Scheduling.Rule)
	unit, _ := core.ParseAllocUnit(cfg.Scheduling.Select)
	requeueExit, _ := config.ParseExitCodes(cfg.Jobs.RequeueExit)
	requeueHold, _ := config.ParseExitCodes(cfg.Jobs.RequeueExitHold)
	c := engine.Config{
		State: state.Config{
			Partitions: cfg.CorePartitions(), DefaultProject: core.ProjectName(cfg.Accounting.DefaultProject),
			DefMemPerCPU: core.Bytes(cfg.Jobs.DefMemPerCPU), EnforceProjects: enforced.Associations, EnforceQOS: enforced.QOS,
			NoLimits: !enforced.Limits, Safe: enforced.Safe, RunWeight: cfg.Priority.Weights.Run,
			StrictSubmit: cfg.Jobs.StrictSubmit,
			MaxArraySize: int32(cfg.Jobs.MaxArray), MaxJobs: int(cfg.Jobs.MaxJobs),
			JobsPerUser: int(cfg.Limits.JobsPerUser), ArrayTasksPerUser: int(cfg.Limits.ArrayTasksPerUser),
			CronJobsPerUser: int(cfg.Limits.CronJobsPerUser),
			TrialsPerUser:   int(cfg.Limits.TrialsPerUser), StepsPerJob: int(cfg.Limits.StepsPerJob),
			RequeueExit: requeueExit, RequeueExitHold: requeueHold, RequeueDelay: seconds(cfg.Jobs.RequeueDelay),
			KillInvalidDep: cfg.Jobs.KillInvalidDep,
			MaxRequeues:    cfg.Jobs.MaxRequeues, MaxTokens: int(cfg.Limits.Tokens),
			Rule: rule, Reservations: cfg.Scheduling.Reservations,
			Select: unit, Licenses: cfg.CoreLicenses(), Offers: cfg.CoreOffers(),
			Volumes:      cfg.CoreVolumes(),
			Zone:         state.Zone{Location: time.Local},
			MaxKillGrace: seconds(cfg.Timers.MaxKillGrace), InteractiveIdle: seconds(cfg.Timers.InteractiveIdle),
			ReservationOverrun: core.Seconds(cfg.Jobs.ResvOverrun),
			Power:              powerRules(cfg),
			Containers:         core.ContainerRules{Volumes: cfg.Step.Volumes, Privileged: cfg.Step.Privileged},
			Preemption:         cfg.Preemption.Core(), Topology: cfg.CoreTopology(),
			MaxSwitchWait: seconds(cfg.Topology.MaxSwitchWait),
		},
		Inbox: cfg.Server.Inbox,
		Retention: store.Retention{
			Events: cfg.Retention.Events.D(), MaxEvents: cfg.Retention.MaxEvents, Jobs: cfg.Retention.Jobs.D(),
			Keys:  cfg.Retention.Keys.D(),
			Audit: cfg.Retention.Audit.D(),
		},
	}
	c.State.Charges = state.Charges{
		HalfLife: cfg.Priority.HalfLife.Seconds(), Reset: cfg.Priority.ResetPeriod(),
		Billing: cfg.Billing(),
	}
	if p, ok := cfg.Priority.Policy(); ok {
		c.State.Charges.Flags = p.Flags
		c.State.Priority = &state.Priority{
			Config: p, Damp: cfg.Priority.Dampening, Period: cfg.Priority.CalcPeriod.Seconds(),
		}
	}
	if !strings.HasPrefix(cfg.Store(), "sqlite:") { // an embedded store has one server, and the file's lock says so
		c.Lease = cfg.Timers.Lease.D()
	}
	return c
}

func nodeSettings(cfg *config.Config) wire.NodeSettings {
	return wire.NodeSettings{
		Prolog: cfg.Step.Prolog, Epilog: cfg.Step.Epilog, TaskProlog: cfg.Step.TaskProlog,
		TaskEpilog: cfg.Step.TaskEpilog, PrologTimeout: cfg.Step.PrologTimeout.D(), KillWait: cfg.Timers.KillWait.D(),
		UnkillableAfter: cfg.Timers.UnkillableAfter.D(), ConstrainCPUs: cfg.Step.ConstrainCPUs,
		ConstrainMem:     cfg.Step.ConstrainMem,
		ConstrainDevices: cfg.Step.ConstrainDevices, MaxPids: cfg.Step.MaxPids, TmpDir: cfg.Step.TmpDir,
		Sample: cfg.GPU.Sample.D(), DCGMExporter: cfg.GPU.DCGMExporter, LogTail: int64(cfg.Step.LogTail),
		LogPerJob: int64(cfg.Limits.LogPerJob), LogRate: int64(cfg.Limits.LogRate),
		LogRateAlone: int64(cfg.Limits.LogRateAlone),
		MinFreeDisk:  int64(cfg.Limits.MinFreeDisk),
		Connections:  cfg.Limits.Connections,
		ImageCache:   int64(cfg.Step.ImageCache), Prefetch: cfg.Step.Prefetch, Volumes: cfg.Step.Volumes,
		NetRaw: cfg.Step.NetRaw, Publish: cfg.Step.Publish, ContainerCaps: containerCaps(cfg),
		Health: wire.HealthSettings{
			Program: cfg.Health.Program, Every: cfg.Health.Every.D(), Disk: cfg.Health.Disk,
			DiskPercent: cfg.Health.DiskPercent, Memory: cfg.Health.Memory,
			MemoryPercent: cfg.Health.MemoryPercent, Mount: cfg.Health.Mount, Mounts: cfg.Health.Mounts,
			GPUProcesses: cfg.Health.GPUProcesses, Engine: cfg.Health.Engine,
		},
		RebootProgram: cfg.Reboot.Program,
	}
}

// containerCaps are the capabilities of root in users' containers, never nil: a node that is told none takes its own
// list.
func containerCaps(cfg *config.Config) []string {
	caps := make([]string, 0, len(cfg.Step.ContainerCaps))
	for _, name := range cfg.Step.ContainerCaps {
		name, _ = core.Capability(name) // it has been checked
		caps = append(caps, name)
	}
	return caps
}

// hubRules is what nodes and their health go by.
func hubRules(cfg *config.Config) hub.Rules {
	h := hub.Health{
		Interval: cfg.Health.Interval.D(), States: cfg.Health.States, Cycle: cfg.Health.Cycle,
		Return: cfg.Health.Return,
	}
	if cfg.Health.Skew == "drain" {
		h.MaxSkew = cfg.Health.MaxSkew.D()
	}
	return hub.Rules{
		Settings: nodeSettings(cfg), Volumes: cfg.CoreVolumes(), Health: h, KeepLimits: cfg.Step.KeepLimits,
		Sick: hub.Sick{Act: cfg.GPU.Health != "show", Return: cfg.GPU.Return},
	}
}

// watchLogs counts what the logs of each user have, then says when the disk of the logs has too little room and when it
// has enough again.
func (s *server) watchLogs(ctx context.Context) error {
	if err := s.logs.Count(ctx); err != nil {
		s.Log.Warn("the logs of users were not counted", "err", err)
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for was := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if low := s.logs.DiskLow(); low != was {
			was = low
			if low {
				s.Log.Warn("output of jobs is dropped: the disk is nearly full", "dir", s.Config.Logs(), "min_free",
					s.live.Load().Limits.MinFreeDisk.String())
			} else {
				s.Log.Info("output of jobs is kept again", "dir", s.Config.Logs())
			}
		}
	}
}

// purgeLogs removes old logs in bounded batches.
func (s *server) purgeLogs(ctx context.Context) error {
	keep := s.Config.Retention.Logs.D()
	if keep == 0 {
		return nil
	}
	tick := time.NewTicker(10 * time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		n, err := s.logs.Purge(time.Now().Add(-keep), 1000)
		if err == nil {
			_, err = s.samples.Purge(time.Now().Add(-keep), 1000)
		}
		if err != nil {
			s.Log.Warn("purge of logs", "err", err)
		} else if n > 0 {
			s.Log.Debug("purged logs", "files", n)
		}
	}
}

func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, werr := f.Write(data)
	if err := errors.Join(werr, f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), path)
}

// door is a listener with its HTTP server.
type door struct {
	kind string // "socket", "api", "agents"
	l    net.Listener
	http *http.Server
	tls  bool
}

func (d *door) serve() error {
	var err error
	if d.tls {
		err = d.http.ServeTLS(d.l, "", "")
	} else {
		err = d.http.Serve(d.l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("listen on %s: %w", d.l.Addr(), err)
}

func (d *door) shutdown(ctx context.Context) error {
	if err := d.http.Shutdown(ctx); err != nil {
		return errors.Join(err, d.http.Close())
	}
	return nil
}
