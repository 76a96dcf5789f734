package trigger

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/store"
)

// Bounds of what a trigger holds.
const (
	maxProgram = 4096
	maxNodes   = 16 << 10 // bytes of a host list
	maxHosts   = 1 << 18
	maxOffset  = 32000 // seconds, as Slurm's
)

// Kinds of the store's records.
const (
	recordKind = "trigger"
	nextKind   = "trigger-next" // one record: the last id given out
)

// Config is what the settings say of triggers.
type Config struct {
	Max     int64    // in all; 0: no limit
	PerUser int64    // of one who is no administrator; 0: no limit
	Users   bool     // everybody may set some; else administrators alone
	Env     []string // of the programs
}

// Store keeps records.
type Store interface {
	Records(ctx context.Context, kind string) ([]store.Record, error)
	PutRecord(ctx context.Context, epoch int64, kind string, r store.Record) error
}

// entry is a trigger and how far it is.
type entry struct {
	client.Trigger
	Due core.Time `json:"due,omitempty"` // it has fired: when its program runs
	Arg string    `json:"arg,omitempty"` // of its program

	hosts map[string]bool             // of Nodes; nil: all
	hit   []string                    // nodes that fired it, until Arg is made of them
	told  map[core.NodeName]core.Time // idle nodes that a permanent one has told, and since when they were idle
	gone  bool                        // its program ran; the record is still there
}

// Watcher knows the triggers. Make it with New; Load reads them, Publish feeds it, Run fires them.
type Watcher struct {
	engine *engine.Engine
	store  Store
	cfg    func() Config
	log    *slog.Logger
	slots  chan struct{} // a program that runs holds one
	some   atomic.Bool   // there are triggers

	writing sync.Mutex // held by those who change records: one at a time

	mu       sync.Mutex
	list     []*entry // by id
	last     int64    // id given out
	seen     map[core.NodeName]status
	idle     map[core.NodeName]core.Time // since when a node is seen idle
	readOnly bool                        // as last seen
	running  map[uint32]int              // programs that run, by uid
}

// New makes a watcher.
func New(e *engine.Engine, st Store, cfg func() Config, log *slog.Logger) *Watcher {
	return &Watcher{
		engine: e, store: st, cfg: cfg, log: log, slots: make(chan struct{}, maxRunning), running: map[uint32]int{},
	}
}

// Load reads the triggers, and fires those that wait for a server that begins.
func (w *Watcher) Load(ctx context.Context, snap *state.Snapshot) error {
	records, err := w.store.Records(ctx, recordKind)
	if err != nil {
		return fmt.Errorf("triggers: %w", err)
	}
	next, err := w.store.Records(ctx, nextKind)
	if err != nil {
		return fmt.Errorf("triggers: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range next {
		w.last, _ = strconv.ParseInt(string(r.Doc), 10, 64)
	}
	for _, r := range records {
		e := new(entry)
		if err := json.Unmarshal(r.Doc, e); err != nil {
			w.log.Warn("a trigger cannot be read", "id", r.Name, "err", err)
			continue
		}
		e.expand()
		w.list = append(w.list, e)
		w.last = max(w.last, e.ID)
	}
	slices.SortFunc(w.list, func(a, b *entry) int { return int(a.ID - b.ID) })
	w.look(snap)
	for _, event := range []string{client.EventServerResumed, client.EventServerInControl} {
		w.raise(event, client.TriggerController, "slurmctld")
	}
	return nil
}

// look notes how nodes are now: what is so already is no event.
func (w *Watcher) look(snap *state.Snapshot) {
	w.some.Store(len(w.list) > 0)
	w.seen, w.idle = nil, nil
	if len(w.list) == 0 {
		return
	}
	w.seen, w.idle = map[core.NodeName]status{}, map[core.NodeName]core.Time{}
	for n := range snap.Nodes() {
		w.seen[n.Name] = statusOf(n, snap)
	}
}

func (e *entry) expand() {
	if e.Nodes == "" {
		return
	}
	names, err := hostlist.Expand(e.Nodes, maxHosts)
	e.hosts = map[string]bool{} // a list that cannot be read has nobody
	for _, n := range names {
		e.hosts[n] = err == nil
	}
}

// waits reports whether an event fires a trigger.
func (e *entry) waits(event string) bool {
	return e.Due == 0 && !e.gone && slices.Contains(e.Events, event)
}

// List is the triggers by id: of one user, or with nil of all.
func (w *Watcher) List(uid *uint32) []client.Trigger {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []client.Trigger{}
	for _, e := range w.list {
		if !e.gone && (uid == nil || e.UID == *uid) {
			out = append(out, e.Trigger)
		}
	}
	return out
}

// Set makes a trigger for the user it names. Its id is set.
func (w *Watcher) Set(ctx context.Context, t client.Trigger, admin bool) (*client.Trigger, error) {
	cfg, snap := w.cfg(), w.engine.Snapshot()
	if !admin && !cfg.Users {
		return nil, core.Errorf(core.Denied, "only administrators set triggers here").Because("access_denied")
	}
	e := &entry{Trigger: t}
	if err := e.check(snap); err != nil {
		return nil, err
	}
	e.expand()
	w.writing.Lock()
	defer w.writing.Unlock()
	id, err := w.admit(e, cfg, admin)
	if err != nil {
		return nil, err
	}
	e.ID = id
	if err := w.save(ctx, e); err != nil {
		return nil, err
	}
	if err := w.put(ctx, nextKind, "id", []byte(strconv.FormatInt(id, 10))); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list, w.last = append(w.list, e), id
	if len(w.list) == 1 {
		w.look(snap)
	}
	return &e.Trigger, nil
}

// admit checks a new trigger against those that are there and returns its id.
func (w *Watcher) admit(e *entry, cfg Config, admin bool) (int64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := int64(0)
	for _, o := range w.list {
		if o.UID == e.UID {
			own++
		}
		if !o.gone && e.same(o) {
			return 0, core.Errorf(core.Conflict, "trigger %d is the same", o.ID).Because("trigger_exists")
		}
	}
	switch {
	case cfg.Max > 0 && int64(len(w.list)) >= cfg.Max:
		return 0, core.Errorf(core.Exhausted, "there are %d triggers already; limits.triggers allows no more", len(w.list)).
			Because("too_many_triggers")
	case cfg.PerUser > 0 && own >= cfg.PerUser && !admin:
		return 0, core.Errorf(core.Exhausted, "you have %d triggers already; limits.triggers_per_user allows no more", own).
			Because("too_many_triggers")
	}
	return w.last + 1, nil
}

func (e *entry) same(o *entry) bool {
	return e.UID == o.UID && e.Resource == o.Resource && e.Job == o.Job && e.Nodes == o.Nodes && e.Offset == o.Offset &&
		e.Perm == o.Perm && e.Program == o.Program && slices.Equal(e.Events, o.Events)
}

// check refuses what cannot be a trigger.
func (e *entry) check(snap *state.Snapshot) error {
	if len(e.Events) == 0 {
		return core.Errorf(core.Invalid, "events: name at least one")
	}
	slices.Sort(e.Events)
	e.Events = slices.Compact(e.Events)
	for _, event := range e.Events {
		if !client.HasEvent(e.Resource, event) {
			return core.Errorf(core.Invalid, "events: %q has no event %q", e.Resource, event)
		}
	}
	switch {
	case e.Offset > maxOffset || e.Offset < -maxOffset:
		return core.Errorf(core.Invalid, "offset: %d is not between -%d and %d", e.Offset, maxOffset, maxOffset)
	case !strings.HasPrefix(e.Program, "/") || len(e.Program) > maxProgram:
		return core.Errorf(core.Invalid, "program: it is an absolute path of at most %d bytes", maxProgram)
	case strings.ContainsFunc(e.Program, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return core.Errorf(core.Invalid, "program: it has control characters")
	case (e.Job != 0) != (e.Resource == client.TriggerJob):
		return core.Errorf(core.Invalid, "job: triggers of jobs have one, others have none")
	case e.Nodes != "" && e.Resource != client.TriggerNode:
		return core.Errorf(core.Invalid, "nodes: only triggers of nodes have any")
	}
	if e.Job != 0 {
		return checkJob(snap, e.Job)
	}
	return checkNodes(snap, e.Nodes)
}

func checkJob(snap *state.Snapshot, id core.JobID) error {
	switch j, ok := snap.Job(id); {
	case !ok && id < snap.NextJob() && id > 0:
		return core.Errorf(core.NotFound, "job %d has ended", id).Because("job_finished")
	case !ok:
		return core.Errorf(core.NotFound, "there is no job %d", id).Because("invalid_job_id")
	case j.State.Final():
		return core.Errorf(core.Conflict, "job %d has ended", id).Because("job_finished")
	}
	return nil
}

func checkNodes(snap *state.Snapshot, list string) error {
	if list == "" {
		return nil
	}
	bad := core.Errorf(core.Invalid, "nodes: %.100q is not a list of nodes of this cluster", list).Because("invalid_node")
	if len(list) > maxNodes {
		return bad
	}
	names, err := hostlist.Expand(list, maxHosts)
	if err != nil {
		return bad
	}
	for _, name := range names {
		if _, ok := snap.Node(core.NodeName(name)); !ok {
			return bad
		}
	}
	return nil
}

// Clear removes the triggers of a user, or with admin of anybody, that all of which is true of. It returns how many.
func (w *Watcher) Clear(ctx context.Context, which client.ClearTriggers, uid *uint32) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	n := 0
	for _, e := range w.find(which, uid) {
		if err := w.forget(ctx, e); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (w *Watcher) find(which client.ClearTriggers, uid *uint32) (out []*entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.list {
		if (which.ID == 0 || e.ID == which.ID) && (which.Job == 0 || e.Job == which.Job) &&
			(which.UID == nil || e.UID == *which.UID) && (uid == nil || e.UID == *uid) && !e.gone {
			out = append(out, e)
		}
	}
	return out
}

// forget removes a trigger and its record. w.writing is held.
func (w *Watcher) forget(ctx context.Context, e *entry) error {
	if err := w.put(ctx, recordKind, e.name(), nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = slices.DeleteFunc(w.list, func(o *entry) bool { return o == e })
	w.some.Store(len(w.list) > 0)
	return nil
}

func (e *entry) name() string { return fmt.Sprintf("%012d", e.ID) }

// save writes the record of a trigger. w.writing is held.
func (w *Watcher) save(ctx context.Context, e *entry) error {
	w.mu.Lock()
	doc, err := json.Marshal(e)
	w.mu.Unlock()
	if err != nil {
		return err
	}
	return w.put(ctx, recordKind, e.name(), doc)
}

func (w *Watcher) put(ctx context.Context, kind, name string, doc []byte) error {
	if err := w.store.PutRecord(ctx, w.engine.Epoch(), kind, store.Record{Name: name, Doc: doc}); err != nil {
		return core.Errorf(core.Unavailable, "the trigger was not recorded: %v", err)
	}
	return nil
}
