package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
	"bireme.dev/bireme/internal/store"
)

// Config of an engine. Zero values are usable.
type Config struct {
	State      state.Config
	Holder     string        // who we are to the lease; the same holder takes over at once
	Lease      time.Duration // 0: leadership does not expire (embedded store)
	Yield      time.Duration // how long others may take the lead first
	Inbox      int           // commands that may wait; 0: 4096
	MaxBatch   int           // commands in one transaction; 0: 512
	Retention  store.Retention
	PurgeEvery time.Duration    // 0: a minute
	Probe      time.Duration    // between attempts while the store cannot be written; 0: 250 ms
	Now        func() time.Time // nil: time.Now
	// Clock is what the lease is counted by; it never goes back and should count the machine's suspension. nil: the
	// time since New.
	Clock func() time.Duration
	// LeastJob is the least id that a new job may have, given the last event of the store; nil: the store's next one.
	LeastJob func(seq int64) core.JobID
	// Check, if set, refuses inputs when it is their turn, for what is known to this server alone. The writer calls it:
	// it must be quick.
	Check  func(state.Input) error
	Record io.Writer // gets every input batch with its now, for replay; nil: nobody does
}

func (c *Config) defaults() {
	if c.Inbox == 0 {
		c.Inbox = 4096
	}
	if c.MaxBatch == 0 {
		c.MaxBatch = 512
	}
	if c.PurgeEvery == 0 {
		c.PurgeEvery = time.Minute
	}
	if c.Probe == 0 {
		c.Probe = 250 * time.Millisecond
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Clock == nil {
		began := time.Now()
		c.Clock = func() time.Duration { return time.Since(began) }
	}
	if c.Holder == "" {
		c.Holder = "bireme"
	}
}

// Published is what subscribers get after each commit, in order.
type Published struct {
	Changes  *core.Changes
	Snapshot *state.Snapshot
	Reloaded bool // the state was loaded again: look at the whole snapshot
}

// Engine is the one writer. Make it with New, then Run it.
type Engine struct {
	cfg   Config
	store store.Store
	log   *slog.Logger
	rec   *recorder

	inbox   chan *request
	urgent  chan *request
	starts  chan *startBatch
	replans chan replanRequest
	faults  faults // planner and streak are the planner's goroutine's, the rest is the writer's

	config   atomic.Pointer[state.Config] // the one that holds
	snapshot atomic.Pointer[state.Snapshot]
	plan     atomic.Pointer[sched.Plan]
	feed     atomic.Pointer[plannerFeed]
	epoch    atomic.Int64
	lease    lease
	readOnly atomic.Pointer[string]
	leading  chan struct{} // closed when the first snapshot is there
	stopped  chan struct{}

	Copy     Copy                                    // of the state, while it does not lead
	stepDown atomic.Pointer[context.CancelCauseFunc] // ends leadership; nil: it does not lead

	mu    sync.Mutex
	subs  []*subscriber
	stats Stats

	senders senders
}

type subscriber struct{ f func(*Published) }

// Stats counts what the engine did.
type Stats struct {
	Batches, Inputs, Refused, Reloads int64
	Panics                            int64         // of the planner and the state, all caught
	Passes                            int64         // of the planner
	Committing, Planning              time.Duration // spent so far in commits and in passes
	LastPass, LongestPass             time.Duration
	LastPassAt                        core.Time
	Backfilled                        int64 // jobs that were to start before others that wait for nodes
	Inbox, Urgent                     int   // commands that wait now, and of those the exits and cancels
}

// request is a command and the caller waiting for its answer. It is the untyped part of a call.
type request struct {
	input    state.Input
	command  interface{ apply(*state.State) error } // the call itself
	user     core.UserName
	isUrgent bool // it came by the lane of exits and cancels
	err      error
	done     chan struct{}
}

// call is a request with its reply, which may be read once done is closed.
type call[R any] struct {
	request
	typed state.Command[R]
	reply R
}

func newCall[R any](in state.Command[R]) *call[R] {
	c := &call[R]{request: request{input: in, done: make(chan struct{})}, typed: in}
	c.command = c
	return c
}

func (c *call[R]) apply(s *state.State) (err error) {
	c.reply, err = state.Apply(s, c.typed)
	return err
}

// result waits for the answer.
func (c *call[R]) result(ctx context.Context, e *Engine) (reply R, err error) {
	if err := e.wait(ctx, &c.request); err != nil {
		return reply, err
	}
	return c.reply, nil
}

// New makes an engine over a store.
func New(st store.Store, cfg Config, log *slog.Logger) *Engine {
	cfg.defaults()
	e := &Engine{
		cfg: cfg, store: st, log: log, rec: newRecorder(cfg.Record, log),
		inbox: make(chan *request, cfg.Inbox), urgent: make(chan *request, cfg.Inbox), starts: make(chan *startBatch),
		replans: make(chan replanRequest),
		leading: make(chan struct{}), stopped: make(chan struct{}), senders: newSenders(cfg.Now, cfg.Inbox),
	}
	e.config.Store(&cfg.State)
	e.Copy.init(e)
	return e
}

// Snapshot is the last committed state; nil before the engine leads.
func (e *Engine) Snapshot() *state.Snapshot { return e.snapshot.Load() }

// Plan is the last plan; it may be nil.
func (e *Engine) Plan() *sched.Plan { return e.plan.Load() }

// Epoch is the number this engine leads under; 0 before it does.
func (e *Engine) Epoch() int64 { return e.epoch.Load() }

// Leading is closed once the engine leads and has loaded.
func (e *Engine) Leading() <-chan struct{} { return e.leading }

// ReadOnly tells why nothing can be written now, or "".
func (e *Engine) ReadOnly() string {
	if s := e.readOnly.Load(); s != nil {
		return *s
	}
	return ""
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.stats
	s.Inbox, s.Urgent = len(e.inbox)+len(e.urgent), len(e.urgent)
	return s
}

// Subscribe calls f after each commit, in order, from the committing goroutine: f must be quick. It returns a function
// that ends it.
func (e *Engine) Subscribe(f func(*Published)) (cancel func()) {
	s := &subscriber{f: f}
	e.mu.Lock()
	e.subs = append(slices.Clone(e.subs), s)
	e.mu.Unlock()
	return func() {
		e.mu.Lock()
		e.subs = slices.DeleteFunc(slices.Clone(e.subs), func(o *subscriber) bool { return o == s })
		e.mu.Unlock()
	}
}

func (e *Engine) publish(p *Published) {
	e.mu.Lock()
	subs := e.subs
	e.mu.Unlock()
	for _, s := range subs {
		s.f(p)
	}
}

// Do carries out a command and returns its reply when it is durable. A full inbox, or a user with more than a quarter
// of it, gives `exhausted`; a store that cannot be written gives `unavailable`: send it again, a submission under the
// same key.
func Do[R any](ctx context.Context, e *Engine, in state.Command[R]) (reply R, err error) {
	c := newCall(in)
	if err := e.enqueue(&c.request); err != nil {
		return reply, err
	}
	return c.result(ctx, e)
}

// enqueue puts a request into the inbox.
func (e *Engine) enqueue(r *request) error {
	if why := e.ReadOnly(); why != "" {
		return unavailable(why)
	}
	r.user = senderOf(r.input)
	if isFull, err := e.senders.enqueued(r.user); err != nil {
		if isFull {
			e.countRefused()
		}
		return err
	}
	select {
	case e.inbox <- r:
		return nil
	default:
		e.senders.dequeued(r.user)
		e.countRefused()
		return core.Errorf(core.Exhausted, "the server is busy; try again")
	}
}

func (e *Engine) countRefused() {
	e.mu.Lock()
	e.stats.Refused++
	e.mu.Unlock()
}

// Urgent is Do for exits and cancels: they have a lane of their own and are never refused for lack of room.
func Urgent[R any](ctx context.Context, e *Engine, in state.Command[R]) (reply R, err error) {
	p, err := Send(ctx, e, in)
	if err != nil {
		return reply, err
	}
	return p.Wait(ctx)
}

// Pending is the answer to come of a command that was sent with Send.
type Pending[R any] struct {
	e *Engine
	c *call[R]
}

// Send is Urgent without waiting: many exits of one agent go into one transaction.
func Send[R any](ctx context.Context, e *Engine, in state.Command[R]) (*Pending[R], error) {
	c := newCall(in)
	if err := e.enqueueUrgent(ctx, &c.request); err != nil {
		return nil, err
	}
	return &Pending[R]{e, c}, nil
}

// Wait waits for the answer.
func (p *Pending[R]) Wait(ctx context.Context) (R, error) { return p.c.result(ctx, p.e) }

// enqueueUrgent puts a request into the urgent lane, waiting for room there.
func (e *Engine) enqueueUrgent(ctx context.Context, r *request) error {
	if err := e.senders.checkUrgent(senderOf(r.input)); err != nil {
		return err
	}
	r.isUrgent = true
	select {
	case e.urgent <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		return unavailable("the server is stopping")
	}
}

// wait waits until a request is answered.
func (e *Engine) wait(ctx context.Context, r *request) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.stopped:
		select {
		case <-r.done:
			return r.err
		default:
			return unavailable("the server is stopping")
		}
	}
}

func unavailable(why string) error {
	return core.Errorf(core.Unavailable, "nothing can be recorded now: %s; try again", why)
}

// senderOf finds who sends a command that any user may send: it takes of their share of the inbox, and they answer for
// a state that fails on it.
func senderOf(in state.Input) core.UserName {
	switch in := in.(type) {
	case *state.Submit:
		return in.By.User
	case *state.Try:
		return in.By.User
	case *state.UpdateJob:
		return in.By.User
	case *state.CreateStep:
		return in.By.User
	case *state.UpdateStep:
		return in.By.User
	case *state.Cancel:
		return in.By.User
	case *state.AllocDone:
		return in.By.User
	case *state.Requeue:
		return in.By.User
	case *state.Suspend:
		return in.By.User
	case *state.PutToken:
		return in.By.User
	case *state.RotateToken:
		return in.By.User
	case *state.RevokeToken:
		return in.By.User
	case *state.RevokeJWTs:
		return in.By.User
	}
	return ""
}

// Run leads until ctx ends or leadership is lost: its lease was not renewed in time, or the store says that somebody
// else leads. It returns nil only for ctx.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.stopped)
	if err := e.lead(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if e.cfg.Lease > 0 {
		defer resign(e)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.stepDown.Store(&cancel)
	defer e.stepDown.Store(nil)
	// What was begun is finished, so that a stop leaves no fate unknown; without the lease it must not be waited for.
	writing, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	var wg sync.WaitGroup
	if e.cfg.Lease > 0 {
		lost := func(why error) {
			e.lease.over.Store(true)
			cancel(fmt.Errorf("%w: %w", ErrLeadershipLost, why))
			giveUp()
		}
		wg.Go(func() { renewLease(ctx, e, lost) })
		wg.Go(func() { e.lease.watch(ctx, &e.cfg, lost) })
	}
	wg.Go(func() { e.purge(ctx) })
	err := e.write(ctx, writing)
	e.rec.flush()
	cancel(err)
	wg.Wait()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if errors.Is(err, store.ErrStale) && !errors.Is(err, ErrLeadershipLost) {
		err = fmt.Errorf("%w: %w", ErrLeadershipLost, err)
	}
	return err
}

// purge removes what is past its time, a bounded batch at a time.
func (e *Engine) purge(ctx context.Context) {
	for pause(ctx, e.cfg.PurgeEvery) {
		for more := true; more && ctx.Err() == nil; {
			var err error
			var n int
			n, more, err = e.store.Purge(ctx, e.epoch.Load(), e.cfg.Retention, core.At(e.cfg.Now()))
			if err != nil {
				if ctx.Err() == nil {
					e.log.Warn("purge", "err", err)
				}
				break
			}
			if n > 0 {
				e.log.Debug("purged", "rows", n)
			}
		}
	}
}

// pause waits for d and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
