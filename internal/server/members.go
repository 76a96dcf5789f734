package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/store"
)

// row is what a server writes of itself.
type row struct {
	client.Server
	Cluster string `json:"cluster"`
}

// checkCluster refuses a database in which servers of another cluster are at work.
func checkCluster(ctx context.Context, st store.Store, cfg *config.Config) error {
	rows, err := st.Servers(ctx)
	if err != nil {
		return nil //nolint:nilerr // the store is away: a server waits for it
	}
	for _, r := range rows {
		var other row
		if json.Unmarshal(r.Doc, &other) == nil && r.Age < silentAfter && other.Cluster != cfg.Cluster {
			return core.Errorf(core.Conflict, "server.store: server %s of cluster %s works in this database, and these "+
				"settings are of cluster %s: name another database, or set cluster: %[2]s to make this a server of that cluster",
				other.Name, other.Cluster, cfg.Cluster)
		}
	}
	return nil
}

// members is what this server knows of the servers of its cluster, and what it tells them of itself: a row in the
// store.
type members struct {
	store store.Store
	self  string // its name to the lease
	// The cluster's name, for servers of others.
	cluster string
	log     *slog.Logger
	term    atomic.Pointer[term]
	leader  atomic.Pointer[string] // address of who leads; nil: not known
	asked   atomic.Int64           // when somebody last wanted to know without an answer, by bootTime
	others  atomic.Pointer[[]string]
}

// term is what this server is at the moment.
type term struct {
	engine  *engine.Engine
	address string
	about   client.Server
}

const (
	lookEvery   = time.Second            // at who leads
	lookHurried = 200 * time.Millisecond // while a call waits for a leader
	tellEvery   = 2 * time.Second
	silentAfter = 10 * time.Second
	forgetAfter = 24 * time.Hour
)

// Leader is where the server that leads is reached; "": nobody is known to lead.
func (m *members) Leader() string {
	if t := m.term.Load(); t != nil && t.engine.Epoch() != 0 && t.engine.HoldsLease() {
		return t.address
	}
	if a := m.leader.Load(); a != nil && !m.isSelf(*a) {
		return *a
	}
	m.asked.Store(int64(bootTime()))
	return ""
}

// isSelf reports whether an address is this server's own, which does not lead: what was seen of it is old.
func (m *members) isSelf(address string) bool {
	t := m.term.Load()
	return t != nil && t.address == address
}

// run looks at the others and tells of this server until ctx ends.
func (m *members) run(ctx context.Context) {
	var told time.Duration
	for ctx.Err() == nil {
		now := bootTime()
		if t := m.term.Load(); t != nil && (told == 0 || now-told >= tellEvery) {
			told = now
			m.tell(ctx, t)
		}
		m.look(ctx)
		wait := lookEvery
		if m.leader.Load() == nil && bootTime()-time.Duration(m.asked.Load()) < lookEvery {
			wait = lookHurried
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	last, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer stop()
	if err := m.store.PutServer(last, m.self, nil); err != nil {
		m.log.Debug("this server was not taken off the list of servers", "err", err)
	}
}

// tell writes this server's row.
func (m *members) tell(ctx context.Context, t *term) {
	ctx, stop := context.WithTimeout(ctx, tellEvery)
	defer stop()
	doc, err := json.Marshal(row{m.describe(t), m.cluster})
	if err == nil {
		err = m.store.PutServer(ctx, m.self, doc)
	}
	if err != nil {
		m.log.Debug("this server's row was not written", "err", err)
	}
}

// describe is this server as it is now.
func (m *members) describe(t *term) client.Server {
	s := t.about
	s.Address, s.Role, s.Behind = t.address, "follows", t.engine.Copy.Behind().Seconds()
	if t.engine.Epoch() != 0 && t.engine.HoldsLease() {
		s.Role, s.Behind = "leads", 0
	}
	if snap := t.engine.Snapshot(); snap != nil {
		s.Seq = snap.Seq()
	}
	return s
}

// look finds out who leads.
func (m *members) look(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Second)
	defer stop()
	l, err := m.store.Leader(ctx)
	if err != nil {
		return // what was known holds
	}
	if l.Left <= 0 || l.Holder == "" {
		m.leader.Store(nil)
		return
	}
	rows, err := m.store.Servers(ctx)
	if err != nil {
		return
	}
	var leader *string
	var others []string
	for _, r := range rows {
		var s client.Server
		if json.Unmarshal(r.Doc, &s) != nil || s.Address == "" {
			continue
		}
		if r.ID == l.Holder {
			leader = &s.Address
		}
		if r.ID != m.self && r.Age < forgetAfter {
			others = append(others, s.Address)
		}
	}
	m.leader.Store(leader)
	m.others.Store(&others)
}

// addresses are where agents find the other servers.
func (m *members) addresses() []string {
	if o := m.others.Load(); o != nil {
		return *o
	}
	return nil
}

// list shows all servers.
func (m *members) list(ctx context.Context) ([]client.Server, error) {
	t := m.term.Load()
	own := m.describe(t)
	own.Self = true
	out := []client.Server{own}
	l, err := m.store.Leader(ctx)
	if err != nil {
		return out, nil //nolint:nilerr // the store is away: this one is there
	}
	rows, err := m.store.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		var s client.Server
		if r.ID == m.self || json.Unmarshal(r.Doc, &s) != nil || r.Age > forgetAfter {
			continue
		}
		switch {
		case r.Age > silentAfter:
			s.Role, s.Silent = "silent", r.Age.Seconds()
		case r.ID == l.Holder && l.Left > 0:
			s.Role, s.Behind = "leads", 0
		default:
			s.Role = "follows"
		}
		out = append(out, s)
	}
	return out, nil
}

// takeTerm has the others learn what this server is from now on.
func (m *members) takeTerm(s *server) {
	name := s.Config.Server.ID
	if name == "" {
		name, _ = os.Hostname() // without a name it is known by its address
	}
	addr := s.agentAddr()
	if d := s.door("api"); addr == "" && d != nil && d.tls {
		addr = d.address()
	}
	m.term.Store(&term{engine: s.engine, address: addr, about: client.Server{
		Name: name, Version: s.Version, Started: core.At(s.began),
	}})
}
