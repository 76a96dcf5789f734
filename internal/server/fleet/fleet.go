package fleet

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"bireme.dev/bireme/internal/backend/ssh"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/ca"
)

// Bounds on what is done at once.
const (
	maxConnects = 32 // logins and installations
	maxUploads  = 8
)

// Config is what the fleets go by.
type Config struct {
	Version   string
	Servers   []string // agents dial, if they can
	Bundles   *ssh.Bundles
	Authority *ca.Authority
	Serve     func(net.Listener) error      // takes agents' connections from a tunnel, until it is closed
	Connected func(node core.NodeName) bool // its agent is
	Drop      func(node core.NodeName)      // cuts its connection
	HostKeys  ssh.HostKeys
	Patience  Patience
}

// Patience says how long things are waited for. Zero fields get what a server uses.
type Patience struct {
	Return  time.Duration // for an agent that was there before to come by itself, after a start of the server
	Connect time.Duration // for an agent that was started to connect
	Least   time.Duration // before a host is tried again, at first
	Most    time.Duration // and at last
	Leave   int           // how often a host that leaves is tried
}

func (p *Patience) defaults() {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&p.Return, 3*time.Second)
	set(&p.Connect, 45*time.Second)
	set(&p.Least, time.Second)
	set(&p.Most, time.Minute)
	if p.Leave == 0 {
		p.Leave = 3
	}
}

// Fleets keeps the hosts of all fleets. Make it with New, subscribe Publish, then Run it.
type Fleets struct {
	cfg     Config
	engine  *engine.Engine
	log     *slog.Logger
	connect chan struct{} // a place for each login under way
	upload  chan struct{}
	news    chan struct{} // fleets changed

	mu    sync.Mutex
	hosts map[core.NodeName]*host
}

// New makes the keeper of fleets.
func New(cfg Config, e *engine.Engine, log *slog.Logger) *Fleets {
	cfg.Patience.defaults()
	return &Fleets{
		cfg: cfg, engine: e, log: log, connect: make(chan struct{}, maxConnects), upload: make(chan struct{}, maxUploads),
		news: make(chan struct{}, 1), hosts: map[core.NodeName]*host{},
	}
}

// Publish takes note of a commit; it is quick.
func (f *Fleets) Publish(p *engine.Published) {
	if len(p.Changes.Fleets)+len(p.Changes.GoneFleets) > 0 || p.Reloaded {
		wake(f.news)
	}
	for _, n := range p.Changes.Nodes {
		if n.Fleet == "" {
			continue
		}
		f.mu.Lock()
		if h := f.hosts[n.Name]; h != nil {
			wake(h.moved)
		}
		f.mu.Unlock()
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it will wake up anyway
	}
}

// Run keeps hosts until ctx ends.
func (f *Fleets) Run(ctx context.Context) error {
	var all sync.WaitGroup
	defer all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		if snap := f.engine.Snapshot(); snap != nil {
			f.mu.Lock()
			there := map[core.NodeName]bool{}
			for _, fl := range snap.Fleets() {
				for i := range fl.Hosts {
					name := fl.Hosts[i].Node
					there[name] = true
					if h := f.hosts[name]; h != nil && h.ctx.Err() == nil {
						wake(h.changed)
						continue
					}
					h := f.newHost(ctx, fl.Name, fl.Hosts[i].Num, name)
					f.hosts[name] = h
					all.Go(h.keep)
				}
			}
			for name, h := range f.hosts {
				if !there[name] {
					h.stop()
					delete(f.hosts, name)
				}
			}
			f.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.news:
		}
	}
}

// Phase is what is being done about a host just now; empty: nothing.
func (f *Fleets) Phase(node core.NodeName) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[node]; h != nil {
		if p := h.phase.Load(); p != nil {
			return *p
		}
	}
	return ""
}

// Retry has the hosts of a fleet that could not be made nodes tried again at once.
func (f *Fleets) Retry(fleet string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if _, x := h.spec(); h.fleet == fleet && x != nil && x.Cause != "" {
			h.say("queued")
			wake(h.again)
		}
	}
}
