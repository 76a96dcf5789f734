package services

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/servicelife"
	"bireme.dev/bireme/internal/proxy"
)

// Deps are what services stand on.
type Deps struct {
	Engine *engine.Engine
	Proxy  *proxy.Proxy
	Lines  *Lines
	// Ask has the node of a job connect to its port.
	Ask  func(j *core.Job, port int32, token string) error
	Blob func(ctx context.Context, h core.Hash) ([]byte, error)
	Log  *slog.Logger
}

// Services keeps services going. Make it with New.
type Services struct {
	Deps
	wake chan struct{}

	mu      sync.Mutex
	stale   bool // the table has to be made again
	probers map[string]*prober
	work    sync.WaitGroup
}

// New makes it; Run does the work.
func New(d Deps) *Services {
	return &Services{Deps: d, wake: make(chan struct{}, 1), stale: true, probers: map[string]*prober{}}
}

// Publish follows a commit; it is quick.
func (s *Services) Publish(p *engine.Published) {
	c := p.Changes
	concerns := p.Reloaded
	for _, r := range c.Runs {
		concerns = concerns || r.Service != nil
	}
	for _, j := range c.Jobs {
		if concerns {
			break
		}
		if j.Spec.Run != "" {
			r, ok := p.Snapshot.Run(j.Spec.Project, j.Spec.Run)
			concerns = ok && r.Service != nil
		}
	}
	if concerns {
		s.mu.Lock()
		s.stale = true
		s.mu.Unlock()
		s.Wake()
	}
}

// Wake has the services looked at.
func (s *Services) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// lookEvery is how often the load of services is looked at.
const lookEvery = time.Second

// Run keeps services going until ctx ends.
func (s *Services) Run(ctx context.Context) error {
	defer s.work.Wait()
	defer s.stopProbers(nil)
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-t.C:
		}
		s.look(ctx)
	}
}

// look makes the table and brings forward what has something to be done about it.
func (s *Services) look(ctx context.Context) {
	snap := s.Engine.Snapshot()
	if snap == nil {
		return
	}
	s.mu.Lock()
	stale := s.stale
	s.stale = false
	s.mu.Unlock()
	var runs []*core.Run
	for _, r := range snap.Runs() {
		if r.Service != nil {
			runs = append(runs, r)
		}
	}
	if stale {
		s.route(ctx, snap, runs)
	}
	for _, r := range runs {
		if in := s.due(ctx, snap, r); in != nil {
			if _, err := engine.Do(ctx, s.Engine, in); err != nil && ctx.Err() == nil {
				s.Log.Warn("service", "project", r.Project, "run", r.Name, "err", err)
			}
		}
	}
}

// attemptID names an attempt of a replica's job.
func attemptID(j *core.Job) string { return fmt.Sprintf("%d/%d", j.ID, j.Attempt) }

// route tells the proxy what there is, and has replicas probed that run.
func (s *Services) route(ctx context.Context, snap *state.Snapshot, runs []*core.Run) {
	var table []proxy.Service
	running := map[string]bool{}
	for _, r := range runs {
		svc := r.Service
		x := proxy.Service{
			ID: r.ID, Project: r.Project, Name: r.Name, Open: svc.Open, KeepPrefix: svc.KeepPrefix, Model: svc.Model,
			RateLimits: svc.RateLimits, Wakes: svc.Stop == nil && svc.Groups[0].Min == 0,
		}
		for i := range svc.Replicas {
			rep := &svc.Replicas[i]
			j, live := snap.Job(rep.Job)
			v := svc.Version(rep.Version)
			if !live || v == nil || j.State != core.Running || j.Alloc == nil {
				continue
			}
			id := attemptID(j)
			if rep.Draining == 0 {
				running[id] = true
				s.probe(ctx, id, s.dialer(j, v.Port), v.Probes)
			}
			if rep.IsReady(j) {
				x.Replicas = append(x.Replicas, proxy.Replica{ID: id, Dial: s.dialer(j, v.Port)})
			}
		}
		table = append(table, x)
	}
	s.Proxy.SetTable(table)
	s.stopProbers(running)
}

// dialer connects to a port of a replica.
func (s *Services) dialer(j *core.Job, port int32) proxy.DialFunc {
	return func(ctx context.Context) (net.Conn, error) {
		return s.Lines.Dial(ctx, j.Alloc.Nodes[0].Node, func(token string) error { return s.Ask(j, port, token) })
	}
}

// probe begins to probe a replica, unless it is probed.
func (s *Services) probe(ctx context.Context, id string, dial proxy.DialFunc, probes []core.Probe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.probers[id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &prober{dial: dial, probes: probes, news: s.Wake, cancel: cancel, streaks: make([]int32, max(1, len(probes)))}
	s.probers[id] = p
	s.work.Go(func() { p.run(ctx) })
}

// stopProbers ends those that are not of the given attempts.
func (s *Services) stopProbers(keep map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.probers {
		if !keep[id] {
			p.cancel()
			delete(s.probers, id)
		}
	}
}

// Streaks are the successes in a row of a replica's probes.
func (s *Services) Streaks(j *core.Job) []int32 {
	if s == nil { // a server that follows probes nothing
		return nil
	}
	s.mu.Lock()
	p := s.probers[attemptID(j)]
	s.mu.Unlock()
	if p == nil || len(p.probes) == 0 {
		return nil
	}
	_, _, streaks := p.state()
	return streaks
}

// due is what the engine is to be told about a service now; nil: nothing.
func (s *Services) due(ctx context.Context, snap *state.Snapshot, r *core.Run) *state.TendService {
	in := &state.TendService{Project: r.Project, Name: r.Name, ID: r.ID}
	svc := r.Service
	for i := range svc.Replicas {
		x := &svc.Replicas[i]
		j, live := snap.Job(x.Job)
		if !live || j.State != core.Running {
			continue
		}
		if x.Draining != 0 {
			if !x.Stopped && s.Proxy.InFlight(attemptID(j)) == 0 {
				in.Drained = append(in.Drained, x.Num)
			}
			continue
		}
		s.mu.Lock()
		p := s.probers[attemptID(j)]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		ready, message, _ := p.state()
		if (x.ReadyIn == j.Attempt) != ready || x.Message != message {
			in.Ready = append(in.Ready, state.ReplicaNews{Num: x.Num, Attempt: j.Attempt, Ready: ready, Message: message})
		}
	}
	if stats := s.Proxy.Stats(r.ID); stats != nil && svc.Stop == nil {
		for g := range svc.Groups {
			load := stats.Load(windowOf(&svc.Groups[g]), time.Now())
			if want, why := wanted(&svc.Groups[g], load, r.Created, core.At(time.Now())); want != svc.Groups[g].Want {
				in.Scale = append(in.Scale, state.ScaleGroup{Group: int32(g), Want: want, Why: why})
			}
		}
	}
	steps := servicelife.Plan(svc, snap.Job, core.At(time.Now()))
	if len(in.Ready)+len(in.Drained)+len(in.Scale) == 0 && steps.None() {
		return nil
	}
	if svc.Stop == nil {
		s.blobs(ctx, svc, in)
	}
	return in
}

// blobs brings what a replica that is started needs.
func (s *Services) blobs(ctx context.Context, svc *core.Service, in *state.TendService) {
	have := map[core.Hash]bool{{}: true}
	var specs []*core.Spec
	for i := range svc.Versions { // an older one may be gone back to
		specs = append(specs, svc.Versions[i].Specs...)
	}
	for _, spec := range specs {
		for _, h := range []core.Hash{spec.Script, spec.Env, spec.More().Files} {
			if have[h] {
				continue
			}
			have[h] = true
			data, err := s.Blob(ctx, h)
			if err != nil {
				s.Log.Warn("what replicas of a service need", "run", in.Name, "err", err)
				continue
			}
			in.Blobs = append(in.Blobs, core.Blob{Hash: h, Data: data})
		}
	}
}
