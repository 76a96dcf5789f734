package hub

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/wire"
)

// Config is what the hub goes by.
type Config struct {
	Cluster     string
	Version     string
	Servers     []string // told to agents
	Heartbeat   time.Duration
	SilentAfter time.Duration
	Fence       time.Duration
	FenceMargin time.Duration
	// ContainerWait is how long the first container of a job waits for those on other nodes; 0: an hour.
	ContainerWait time.Duration
	Rules                // until SetRules says otherwise
	MPI           string // what is served to the tasks of steps that do not say
	Env           Env
	BlobRoom      int            // bytes of scripts and environments kept in memory; 0: 16 MiB
	Samples       *samples.Store // of what jobs use; nil: not kept
	Ended         EndedFunc      // finds jobs that have left memory; nil: none
	// Stream gives the key of the streams of a step whose srun is there, or "": an agent that was started since is
	// told.
	Stream func(job core.JobID, step string) string
	Certs  func() wire.CertRules    // what nodes' certificates are to be like
	Secret func(name string) []byte // 32 bytes that only this cluster's servers can make, the same for the same name
	// OpenEnv completes the environment of a launch by what is not stored in the clear; nil: nothing is. It does not
	// change what it is given.
	OpenEnv func(j *core.Job, env []byte) ([]byte, error)
	// OpenScript completes the script of a launch by what is known only then; nil: nothing is.
	OpenScript func(j *core.Job, script []byte) []byte
}

// EndedFunc finds a job that has ended; nil for one nobody knows.
type EndedFunc func(ctx context.Context, id core.JobID) (*core.Job, error)

// maxQueue bounds the orders that wait for one agent.
const maxQueue = 1 << 16

// Hub holds the agents' connections. New makes one; Run watches over silence; Publish feeds it.
type Hub struct {
	cfg    Config
	engine *engine.Engine
	logs   *logstore.Store
	log    *slog.Logger
	blobs  *blobs
	began  time.Time

	// Abandoned are steps that nobody launches; Run ends them.
	Abandoned Abandoned
	Stats     Stats

	launches launchBuilder
	live     atomic.Pointer[Rules]

	conns sync.WaitGroup // Serve calls

	mu     sync.Mutex
	closed bool
	loaded bool
	nodes  map[core.NodeName]*node
	jobs   map[core.JobID]*tracked
	// told is signaled after each Publish. L is mu.
	told sync.Cond
}

// tracked is a live job that holds nodes.
type tracked struct {
	job   *core.Job
	told  told
	doing []Progress // before it runs, by node, the newest last
	drops string     // the limit because of which its node drops output
	ports []core.Published
	gang  int // see gangPort; 0: nobody asked yet
	low   lowUse
	// steps are the live steps of the attempt. True: whoever made the step has yet to launch it, and does so or ends it.
	steps map[int32]bool
	// kills are the orders to end live steps, by their number: a node that was away hears of them when it is back.
	kills map[int32]wire.Kill
}

// node is what the hub knows of a node beside its record.
type node struct {
	name  core.NodeName
	conn  *conn // nil: not connected
	jobs  map[core.JobID]struct{}
	heard time.Time // the last frame of its agent
	beat  wire.Heartbeat
	skew  time.Duration
	units []core.UnitState // as it last told
	// What its dcgm-exporter said then.
	exported []byte
	faults   []core.NodeFault // as it last told
	checked  int64            // the interval in which its health program was last asked for
	// Silence that the engine has been told of in this life of the hub.
	silent bool
}

// New makes a hub. Load, or the first Publish, gives it the live jobs.
func New(cfg Config, e *engine.Engine, fetch BlobFunc, logs *logstore.Store, log *slog.Logger) *Hub {
	if cfg.BlobRoom == 0 {
		cfg.BlobRoom = 48 << 20
	}
	h := &Hub{
		cfg: cfg, engine: e, logs: logs, log: log, blobs: newBlobs(cfg.BlobRoom, fetch), began: time.Now(),
		nodes: map[core.NodeName]*node{}, jobs: map[core.JobID]*tracked{},
	}
	h.told.L, h.Stats.h = &h.mu, h
	h.live.Store(&cfg.Rules)
	h.launches = launchBuilder{cfg: &h.cfg, engine: e, blobs: h.blobs, live: &h.live, gangPort: h.gangPort}
	return h
}

// Keep remembers a blob that was just submitted, so that the launch need not fetch it.
func (h *Hub) Keep(hash core.Hash, data []byte) { h.blobs.put(hash, data) }

// Load takes up the live jobs, once. Nobody is connected yet: what is to be done on a node is derived when it connects.
func (h *Hub) Load(snap *state.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loaded {
		return
	}
	h.loaded = true
	for j := range snap.Jobs() {
		h.track(j, toldNothing)
		for _, st := range snap.LiveSteps(j.ID) {
			h.jobs[j.ID].noteStep(st, false)
		}
	}
}

// track notes which nodes a job touches. h.mu is held.
func (h *Hub) track(j *core.Job, t told) {
	gone := j.Alloc == nil || !j.Live()
	next := &tracked{job: j, told: t}
	if old := h.jobs[j.ID]; old != nil {
		if old.job.Attempt == j.Attempt {
			next.doing, next.ports, next.gang, next.drops = old.doing, old.ports, old.gang, old.drops
			next.steps, next.kills = old.steps, old.kills
		}
		h.untrack(old.job)
		if h.cfg.Samples != nil && (gone || old.job.Attempt != j.Attempt) {
			h.cfg.Samples.End(samples.Key{Job: j.ID, Attempt: old.job.Attempt})
		}
	}
	if gone {
		return
	}
	h.jobs[j.ID] = next
	for i := range j.Alloc.Nodes {
		if na := &j.Alloc.Nodes[i]; !na.Done {
			h.node(na.Node).jobs[j.ID] = struct{}{}
		}
	}
}

// untrack forgets a job. h.mu is held.
func (h *Hub) untrack(j *core.Job) {
	for i := range j.Alloc.Nodes {
		delete(h.node(j.Alloc.Nodes[i].Node).jobs, j.ID)
	}
	delete(h.jobs, j.ID)
}

// node finds or makes the entry of a node. h.mu is held.
func (h *Hub) node(name core.NodeName) *node {
	n := h.nodes[name]
	if n == nil {
		n = &node{name: name, jobs: map[core.JobID]struct{}{}, heard: h.began}
		h.nodes[name] = n
	}
	return n
}

// Publish takes what a commit changed and queues the orders that follow. It is called in the order of commits and does
// not block.
func (h *Hub) Publish(p *engine.Published) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.told.Broadcast()
	c := p.Changes
	if p.Reloaded || !h.loaded {
		h.reload(p.Snapshot)
		return
	}
	for _, j := range c.Jobs {
		h.change(j, p.Snapshot)
	}
	for _, n := range c.Nodes {
		h.requestReboot(n)
		h.reconnectWoken(n)
		h.checkKey(n.Name, n.Pin)
	}
	orderVolumes(h.rules(), h.nodes, c.Volumes)
	for _, name := range c.GoneNodes {
		if _, again := p.Snapshot.Node(name); !again {
			h.checkKey(name, nil)
		}
	}
	for _, s := range c.Steps { // the last step of a job that is over lets its nodes be cleaned
		k := h.jobs[s.Job]
		known := k.noteStep(s, true)
		switch {
		case k == nil:
		case over(k.job):
			h.change(k.job, p.Snapshot)
		case known && s.State == core.Running && s.Options.TimeLimit != 0: // it may have changed; a launch has its own
			_ = h.order(k.job, setLimit(k.job, p.Snapshot.LiveSteps(s.Job))) // as below
		case s.State == core.NodeFail && s.Attempt == k.job.Attempt: // its job continues, and some of it may too
			// a node that is away learns of it when it is back
			_ = h.order(k.job, killStep(k.job, strconv.Itoa(int(s.ID)), "DUE TO NODE FAILURE"))
		}
	}
}

// change follows one job's change. h.mu is held.
func (h *Hub) change(j *core.Job, snap *state.Snapshot) {
	var old *core.Job
	t := toldNothing
	if k := h.jobs[j.ID]; k != nil {
		old, t = k.job, k.told
	}
	if old == nil && j.Alloc == nil {
		return // most changes: something waits
	}
	t = derive(old, j, t, snap.LiveSteps(j.ID), func(name core.NodeName, o order) {
		if n := h.nodes[name]; n != nil && n.conn != nil {
			n.conn.queue(o)
		}
	})
	h.track(j, t)
}

// reload follows a state that was loaded again: what was committed stands, what was not is gone. h.mu is held.
func (h *Hub) reload(snap *state.Snapshot) {
	first := !h.loaded // nobody has made a step in this life of the server yet
	h.loaded = true
	for id, k := range h.jobs {
		if _, live := snap.Job(id); !live {
			h.untrack(k.job)
		}
	}
	for j := range snap.Jobs() {
		h.change(j, snap)
		h.Abandoned.add(h.jobs[j.ID].reloadSteps(snap, first))
	}
	for n := range snap.Nodes() {
		h.requestReboot(n)
		h.reconnectWoken(n)
		h.checkKey(n.Name, n.Pin)
	}
	orderVolumes(h.rules(), h.nodes, snap.Volumes())
	for name := range h.nodes {
		if _, known := snap.Node(name); !known {
			h.checkKey(name, nil)
		}
	}
}

// checkKey cuts a connection that was made with a key which is not the node's any more. h.mu is held.
func (h *Hub) checkKey(name core.NodeName, pin *core.NodePin) {
	if n := h.nodes[name]; n != nil && n.conn != nil && n.conn.who.Key != "" && !pin.Takes(n.conn.who.Key) {
		n.conn.disconnect(errors.New("the node's key was revoked or replaced"))
	}
}

// Live is what only the hub knows of a node.
type Live struct {
	Connected bool
	Heard     time.Time // zero: never in this life of the server
	Load      float64
	FreeMem   core.Bytes
	Skew      time.Duration
	Units     []core.UnitState // as the node last told
	Faults    []core.NodeFault // likewise
}

// Live tells about one node.
func (h *Hub) Live(name core.NodeName) Live {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.nodes[name]
	if n == nil {
		return Live{}
	}
	l := Live{
		Connected: n.conn != nil, Load: n.beat.Load, FreeMem: n.beat.FreeMem, Skew: n.skew, Units: n.units,
		Faults: n.faults,
	}
	if n.heard != h.began {
		l.Heard = n.heard
	}
	return l
}

// Connected counts connected agents.
func (h *Hub) Connected() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, n := range h.nodes {
		if n.conn != nil {
			count++
		}
	}
	return count
}

// Signal sends a signal to a job's processes on all its nodes, or to one of its steps. Nobody is told whether they took
// it; a node that is not connected is.
func (h *Hub) Signal(j *core.Job, s wire.Signal) error {
	s.Job, s.Attempt = j.ID, j.Attempt
	return h.toNodes(j, order{typ: wire.TypeSignal, header: s})
}

// ServiceOrder asks the node of a replica for a connection to its port, under a token.
type ServiceOrder struct {
	Job   *core.Job
	Port  int32
	Token string
}

// Send queues the order for the node.
func (o *ServiceOrder) Send(h *Hub) error {
	j := o.Job
	if j.Alloc == nil || len(j.Alloc.Nodes) == 0 {
		return core.Errorf(core.Unavailable, "job %d does not run", j.ID).Because("job_not_running")
	}
	name := j.Alloc.Nodes[0].Node
	key := wire.Key{Job: j.ID, Attempt: j.Attempt, Step: wire.BatchStep, Node: name}
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.nodes[name]
	if n == nil || n.conn == nil {
		return core.Errorf(core.Unavailable, "node %s is not connected", name).Because("node_silent")
	}
	n.conn.queue(order{typ: wire.TypeOpenService, header: wire.OpenService{Key: key, Port: o.Port, Token: o.Token}})
	return nil
}

// KillStep ends one step of a job, as k says: with which grace and for what reason.
func (h *Hub) KillStep(j *core.Job, k wire.Kill) error {
	k.Job, k.Attempt, k.Cause = j.ID, j.Attempt, wire.CauseCancelled
	h.mu.Lock()
	h.jobs[j.ID].noteKill(&k)
	h.mu.Unlock()
	return h.toNodes(j, order{typ: wire.TypeKill, header: k})
}

// noteKill remembers the order to end a step until the step has ended. The job may be nil, and the hub's mu is held.
func (t *tracked) noteKill(k *wire.Kill) {
	id, err := strconv.ParseInt(k.Step, 10, 32)
	if err != nil || t == nil || t.job.Attempt != k.Attempt {
		return
	}
	if _, known := t.steps[int32(id)]; known {
		if t.kills == nil {
			t.kills = map[int32]wire.Kill{}
		}
		t.kills[int32(id)] = *k
	}
}

func killStep(j *core.Job, step, notice string) order {
	return order{typ: wire.TypeKill, header: wire.Kill{
		Job: j.ID, Attempt: j.Attempt, Step: step,
		Cause: wire.CauseCancelled, Notice: notice,
	}}
}

func (h *Hub) toNodes(j *core.Job, o order) error {
	if j.Alloc == nil {
		return core.Errorf(core.Conflict, "job %d does not run", j.ID).Because("job_not_running")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.order(j, o)
}

// order queues o for all nodes of a job that runs. h.mu is held.
func (h *Hub) order(j *core.Job, o order) error {
	var away []core.NodeName
	each(j, func(name core.NodeName, o order) {
		if n := h.nodes[name]; n != nil && n.conn != nil {
			n.conn.queue(o)
		} else {
			away = append(away, name)
		}
	}, o)
	if len(away) > 0 {
		return core.Errorf(core.Unavailable, "node %s is not connected", away[0]).Because("node_silent")
	}
	return nil
}

// Shutdown says goodbye to all agents, waits until their connections have ended (at most until ctx is over, then they
// are cut) and lets no new ones in.
func (h *Hub) Shutdown(ctx context.Context) {
	h.mu.Lock()
	h.closed = true
	for _, n := range h.nodes {
		if n.conn != nil {
			n.conn.queue(order{typ: wire.TypeBye})
			n.conn.leave()
		}
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() { h.conns.Wait(); close(done) }() // ends when the cut connections below have
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	h.mu.Lock()
	for _, n := range h.nodes {
		if n.conn != nil {
			n.conn.disconnect(errors.New("the server stops"))
		}
	}
	h.mu.Unlock()
	<-done
}

// Drop cuts a node's connection, if it has one.
func (h *Hub) Drop(name core.NodeName) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := h.nodes[name]; n != nil && n.conn != nil {
		n.conn.disconnect(errors.New("the node has left"))
	}
}
