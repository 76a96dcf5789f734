package events

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// Events serves the stream of events.
type Events struct {
	*call.Base
	Watch *Watchers
	past  pastPages
}

// Bounds of watching.
const (
	maxBehind = 4096             // commits a watcher may be behind before it is dropped
	maxKeptEv = 1 << 16          // and events of them that are kept
	pastPage  = 1000             // events read from the store at once
	heartbeat = 15 * time.Second // between comments that keep proxies from closing a quiet stream
)

// Watchers spreads published changes to those who wait for them. What was published lately is kept once for all: a
// watcher is a place in it, so that one that waits costs next to nothing.
type Watchers struct {
	mu     sync.Mutex
	count  int           // event streams
	kept   []*eventBatch // of the last commits
	events int           // in kept
	first  int64         // number of kept[0]
	epoch  int           // grows when what was published may not be all there is
	wake   chan struct{} // closed by the next commit; nil while nobody waits for it
	jobs   map[core.JobID]map[*jobWait]struct{}
	closed bool
	End    chan struct{}
}

// watcher is one event stream's place.
type watcher struct {
	next  int64
	epoch int
}

// jobWait waits for something about one job.
type jobWait struct {
	done chan struct{}
	over func() bool
	once sync.Once
}

func NewWatchers() *Watchers {
	return &Watchers{jobs: map[core.JobID]map[*jobWait]struct{}{}, End: make(chan struct{})}
}

// Publish never blocks: a watcher that is too far behind is dropped and starts again from its last number.
func (w *Watchers) Publish(p *engine.Published) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(p)
	if len(w.jobs) == 0 {
		return
	}
	look := func(set map[*jobWait]struct{}) {
		for k := range set {
			if k.over() {
				k.once.Do(func() { close(k.done) })
			}
		}
	}
	if p.Reloaded { // what changed is not told
		for _, set := range w.jobs {
			look(set)
		}
	}
	for _, j := range p.Changes.Jobs {
		look(w.jobs[j.ID])
	}
}

// keep adds the events of a commit for those who watch. w.mu is held.
func (w *Watchers) keep(p *engine.Published) {
	switch {
	case p.Reloaded: // events of a commit with an unknown fate may have been written: look into the store
		w.first += int64(len(w.kept)) + 1
		w.kept, w.events = nil, 0
		w.epoch++
	case w.count == 0:
		w.first += int64(len(w.kept)) + 1
		w.kept, w.events = nil, 0
	case len(p.Changes.Events) == 0: // nobody is to be woken for it
		return
	default:
		w.kept, w.events = append(w.kept, &eventBatch{events: p.Changes.Events}), w.events+len(p.Changes.Events)
		for len(w.kept) > maxBehind || w.events > maxKeptEv && len(w.kept) > 1 {
			w.events -= len(w.kept[0].events)
			w.kept[0] = nil
			w.kept = w.kept[1:]
			w.first++
		}
	}
	if w.wake != nil {
		close(w.wake)
		w.wake = nil
	}
}

// add makes a watcher of what is published from now on.
func (w *Watchers) add() (*watcher, func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	return &watcher{next: w.first + int64(len(w.kept)), epoch: w.epoch}, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.count--
	}
}

// takeMost is how many commits a watcher takes at once.
const takeMost = 256

// take returns the events of the next commits, or a channel that is closed when there are some. A watcher that is too
// far behind is told so, once.
func (w *Watchers) take(s *watcher) (commits []*eventBatch, wake <-chan struct{}, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.epoch != w.epoch || s.next < w.first {
		return nil, nil, false
	}
	if i := int(s.next - w.first); i < len(w.kept) {
		commits = slices.Clone(w.kept[i:min(len(w.kept), i+takeMost)]) // what is kept is cut off at its front meanwhile
		s.next += int64(len(commits))
		return commits, nil, true
	}
	if w.wake == nil {
		w.wake = make(chan struct{})
	}
	return nil, w.wake, true
}

// WhenOver closes done when over says so, now or after a change of the job.
func (w *Watchers) WhenOver(id core.JobID, done chan struct{}, over func() bool) (stop func()) {
	k := &jobWait{done: done, over: over}
	w.mu.Lock()
	if w.jobs[id] == nil {
		w.jobs[id] = map[*jobWait]struct{}{}
	}
	w.jobs[id][k] = struct{}{}
	w.mu.Unlock()
	if over() { // it may have been before we looked
		k.once.Do(func() { close(done) })
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.jobs[id], k)
		if len(w.jobs[id]) == 0 {
			delete(w.jobs, id)
		}
	}
}

// Close ends all streams.
func (w *Watchers) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.End)
	}
	for _, set := range w.jobs {
		for k := range set {
			k.once.Do(func() { close(k.done) })
		}
	}
}

// WatchEvents streams events after a number: first the store's, then those of each commit, without a gap because the
// subscription is older than the first look into the store.
func (a *Events) WatchEvents(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	text := r.URL.Query().Get("after")
	if text == "" {
		text = r.Header.Get("Last-Event-ID")
	}
	after, err := call.Number(text, snap.Seq())
	if err != nil {
		return nil, err
	}
	sub, stop := a.Watch.add()
	defer stop()
	turns := &call.Held{}
	if ans, ok := w.(*call.Answer); ok {
		turns = &ans.Held
	}
	past, err := a.pastEvents(r.Context(), turns, after)
	if errors.Is(err, store.ErrGone) {
		return nil, core.Errorf(core.Gone, "events after %d have been purged; start again from a listing and its number",
			after).Because("events_purged")
	}
	if err != nil {
		return nil, call.StoreError(err)
	}
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return nil, call.ErrAnswered // the caller left
	}
	s := &sse{a: a, w: w, rc: http.NewResponseController(w), who: who, last: after, held: turns}
	if err := s.run(r, sub, past); err != nil {
		return nil, call.ErrAnswered // the caller left, or is told in the stream
	}
	return nil, nil
}

// sse writes one event stream.
type sse struct {
	a    *Events
	w    io.Writer
	rc   *http.ResponseController
	who  *call.Caller
	held *call.Held // whose turns the reading of what is past takes
	last int64
}

func (s *sse) run(r *http.Request, sub *watcher, past *eventBatch) error {
	for {
		// The store has a commit a moment before the snapshot does. An event must not be learned of before what it
		// tells can be read, so the newest ones are left to the subscription, which will bring them.
		if err := s.send(r.Context(), s.a.Engine.Snapshot().Seq(), past); err != nil {
			return err
		}
		if len(past.events) < pastPage || s.last < past.events[pastPage-1].Seq {
			break
		}
		var err error
		if past, err = s.a.pastEvents(r.Context(), s.held, s.last); err != nil {
			return err
		}
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		commits, wake, ok := s.a.Watch.take(sub)
		if !ok {
			return s.farewell("dropped", "the stream fell behind; resume from the last id")
		}
		if wake == nil {
			if err := s.send(r.Context(), math.MaxInt64, commits...); err != nil {
				return err
			}
			continue
		}
		select {
		case <-wake:
			if err := s.rest(r.Context()); err != nil {
				return s.ended(r.Context())
			}
		case <-tick.C:
			if err := s.write([]byte(": still here\n\n")); err != nil {
				return err
			}
		case <-s.a.Watch.End:
			return s.farewell("bye", "the server stops; resume from the last id")
		case <-r.Context().Done():
			return s.ended(r.Context())
		}
	}
}

// Each commit wakes every stream: one user with many would have the server write to all of theirs at each of
// anybody's commits, and everybody else wait behind that. A user with few streams learns of a change at once; with
// more of them each rests first, restEach for each stream on average, and then has all there is in one write.
const (
	restFrom = 16 // streams
	restEach = 2 * time.Millisecond
)

// rest waits until the caller's next write is due. The time is random, so that a user's streams do not write all at
// once.
func (s *sse) rest(ctx context.Context) error {
	d := restOf(s.held.Streams())
	if d == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(rand.N(2 * d))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.a.Watch.End:
	case <-ctx.Done():
	}
	return ctx.Err()
}

func restOf(streams int) time.Duration { return time.Duration(max(0, streams-restFrom)) * restEach }

// ended tells a caller whose rights are gone why the stream ends.
func (s *sse) ended(ctx context.Context) error {
	if e := call.EndOf(ctx); e != nil {
		return s.farewell("bye", e.Text)
	}
	return ctx.Err()
}

// send writes the events up to a number that the caller may see, once each. Nothing of it is kept: most streams are
// quiet most of the time. The many streams of one user take turns with that user's other calls.
func (s *sse) send(ctx context.Context, upTo int64, batches ...*eventBatch) error {
	v, err := s.a.Viewer(s.who) // roles and settings may have changed since the last commit
	if err != nil {
		return err
	}
	buf := call.Bodies.Get().(*bytes.Buffer)
	defer call.PutBody(buf)
	buf.Reset()
	for {
		var b []byte
		fill := func() (err error) {
			b, err = s.fill(buf.AvailableBuffer(), v, upTo, batches)
			return err
		}
		if s.held.Streams() > restFrom {
			err = s.held.Turn(ctx, fill)
		} else {
			err = fill()
		}
		if err == nil && len(b) > 0 {
			err = s.write(b)
		}
		if err != nil || len(b) < maxChunk {
			return err
		}
	}
}

// fill appends the texts of the next events. With maxChunk or more there may be others.
func (s *sse) fill(b []byte, v *view.Viewer, upTo int64, batches []*eventBatch) ([]byte, error) {
	for _, batch := range batches {
		for i := range batch.events {
			e := &batch.events[i]
			if e.Seq <= s.last {
				continue
			}
			if e.Seq > upTo || len(b) >= maxChunk {
				return b, nil
			}
			s.last = e.Seq
			if !v.SeesEvent(e) {
				continue
			}
			text, err := batch.text(i)
			if err != nil {
				return b, err
			}
			b = append(b, text...)
		}
	}
	return b, nil
}

// maxChunk is how much of a stream is written at once.
const maxChunk = 64 << 10

func (s *sse) farewell(kind, text string) error {
	return s.write([]byte("event: " + kind + "\nid: " + strconv.FormatInt(s.last, 10) + "\ndata: {\"kind\":\"" + kind +
		"\",\"seq\":" +
		strconv.FormatInt(s.last, 10) + ",\"data\":{\"message\":\"" + text + "\"}}\n\n"))
}

// write sends and flushes; a caller that takes nothing for a while is given up.
func (s *sse) write(b []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(2 * heartbeat)); err != nil {
		return err
	}
	if len(b) > 0 {
		if _, err := s.w.Write(b); err != nil {
			return err
		}
	}
	return s.rc.Flush()
}
