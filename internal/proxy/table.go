package proxy

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
)

// DialFunc connects to the port of a replica.
type DialFunc func(ctx context.Context) (net.Conn, error)

// Service is a service as the table has it.
type Service struct {
	ID         string // of the run
	Project    core.ProjectName
	Name       string
	Open       bool // no token is asked for
	KeepPrefix bool
	Model      *core.ServiceModel
	RateLimits []core.RateLimit
	// Wakes: there may be no replica now, and a request has one started.
	Wakes    bool
	Replicas []Replica
}

// Replica is a replica that takes requests.
type Replica struct {
	ID   string // of the attempt: another one has another
	Dial DialFunc
}

// Limits of what one service and one client may hold. A zero field has a default.
type Limits struct {
	PerService int           // requests under way
	PerUser    int           // requests under way, of one user or, without a token, of one address
	Held       int           // requests that wait for a replica, of one service
	HoldFor    time.Duration // how long they wait
	Body       int64         // bytes of a request
	Idle       time.Duration // how long either side may say nothing
}

func (l Limits) withDefaults() Limits {
	set := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	set(&l.PerService, 4096)
	set(&l.PerUser, 1024)
	set(&l.Held, 1024)
	if l.HoldFor == 0 {
		l.HoldFor = 10 * time.Minute
	}
	if l.Body == 0 {
		l.Body = 64 << 20
	}
	if l.Idle == 0 {
		l.Idle = 5 * time.Minute
	}
	return l
}

// Config of a proxy.
type Config struct {
	Limits Limits
	// Admit decides whether a request may reach a service that is not open, and tells whose it is. The error is for the
	// caller.
	Admit func(r *http.Request, s *Service) (user string, err error)
	// See decides whether a caller may learn of a project's models; as Admit.
	See func(r *http.Request, project core.ProjectName) error
	// Woken is told that a request waits for a service without replicas.
	Woken func(id string)
}

// route is a service of the table with what outlives a change of it.
type route struct {
	Service
	state *serviceState
	pool  []*backend
}

// serviceState is what is known of a service for as long as it is in the table.
type serviceState struct {
	stats   Stats
	buckets buckets
	next    uint32 // where the search for a replica begins
}

// Proxy passes requests on.
type Proxy struct {
	cfg   Config
	users counter
	chats atomic.Int64 // bytes that chat requests may take, of those that are under way

	mu       sync.Mutex
	byName   map[string]*route // PROJECT/RUN
	byID     map[string]*route
	backends map[string]*backend
	changed  chan struct{} // closed and replaced with every table
	closed   bool
}

// New makes a proxy with an empty table.
func New(cfg Config) *Proxy {
	cfg.Limits = cfg.Limits.withDefaults()
	return &Proxy{
		cfg: cfg, byName: map[string]*route{}, byID: map[string]*route{}, backends: map[string]*backend{},
		changed: make(chan struct{}),
	}
}

// SetTable replaces the table. Connections to replicas that are no longer in it close when their requests are over.
func (p *Proxy) SetTable(list []Service) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byName, byID, backends := map[string]*route{}, map[string]*route{}, map[string]*backend{}
	for i := range list {
		s := &route{Service: list[i]}
		if old := p.byID[s.ID]; old != nil {
			s.state = old.state
		} else {
			s.state = &serviceState{}
		}
		for _, r := range s.Replicas {
			b := p.backends[r.ID]
			if b == nil {
				b = newBackend(r)
			}
			backends[r.ID] = b
			s.pool = append(s.pool, b)
		}
		byID[s.ID], byName[string(s.Project)+"/"+s.Name] = s, s
	}
	for id, b := range p.backends {
		if backends[id] == nil {
			b.leave()
			if b.busy() { // it is counted until its last request is over
				backends[id] = b
			}
		}
	}
	p.byName, p.byID, p.backends = byName, byID, backends
	close(p.changed)
	p.changed = make(chan struct{})
}

// Close drops all connections to replicas. Requests under way fail.
func (p *Proxy) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, b := range p.backends {
		b.leave()
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// Find gives the service of a name; nil: there is none.
func (p *Proxy) Find(project core.ProjectName, name string) *Service {
	if r := p.find(project, name); r != nil {
		return &r.Service
	}
	return nil
}

func (p *Proxy) find(project core.ProjectName, name string) *route {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byName[string(project)+"/"+name]
}

// InFlight is how many requests a replica answers now, also one that has left the table.
func (p *Proxy) InFlight(replica string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.backends[replica]; b != nil {
		return int(b.inFlight.Load())
	}
	return 0
}

// now gives a service as the table has it at this moment, and the channel that closes when that changes.
func (p *Proxy) now(id string) (*route, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, p.changed
	}
	return p.byID[id], p.changed
}
