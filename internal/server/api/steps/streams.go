package steps

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/events"
	"bireme.dev/bireme/internal/server/api/identity"
	"bireme.dev/bireme/internal/server/api/jobs"
	"bireme.dev/bireme/internal/server/api/selection"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/hub"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/stream"
)

// Streams carries what lasts: the agents' sessions, the streams of steps, followed logs.
type Streams struct {
	*call.Base
	Jobs     *jobs.Jobs
	Steps    *Steps
	Identity *identity.Identity
	Watch    *events.Watchers
	Hub      *hub.Hub
	Streams  *stream.Exchange
	Logs     *logstore.Store
	Conns    *limit.Conns
}

func stepName(id int32) string { return strconv.Itoa(int(id)) }

// Upgrade turns the call's connection into a stream of the given protocol.
func Upgrade(w http.ResponseWriter, r *http.Request, protocol string) (net.Conn, error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), protocol) {
		return nil, core.Errorf(core.Invalid, "this call needs the header Upgrade: %s", protocol)
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, core.Errorf(core.Invalid, "this connection cannot be upgraded (HTTP/1.1 is needed): %v", err)
	}
	if _, err := io.WriteString(c,
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n"); err != nil {
		_ = c.Close()
		return nil, call.ErrAnswered
	}
	if rw.Reader.Buffered() > 0 { // the peer did not wait for our answer
		return &prefixed{Conn: c, r: rw.Reader}, nil
	}
	return c, nil
}

// prefixed is a connection some bytes of which have been read already.
type prefixed struct {
	net.Conn
	r *bufio.Reader
}

func (p *prefixed) Read(b []byte) (int, error) {
	if p.r.Buffered() > 0 {
		return p.r.Read(b)
	}
	return p.Conn.Read(b)
}

// AgentOf returns the node whose agent calls. What an agent passes on for somebody on its node bears their name and is
// not the agent's own word.
func (a *Streams) AgentOf(r *http.Request) (ca.Node, error) {
	n, ok, err := a.Identity.NodeOf(r)
	if err == nil && (!ok || len(r.Header.Values(call.PeerHeader)) > 0) {
		err = core.Errorf(core.Unknown, "agents need a node certificate").Because("no_identity")
	}
	if err == nil {
		a.Conns.Known(r.Context())
	} else if much := a.AdmitUnknown(r); much != nil {
		err = much
	}
	return n, err
}

// AgentConnect is the control stream of a node's agent.
func (a *Streams) AgentConnect(w http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
	n, err := a.AgentOf(r)
	if err != nil {
		return nil, err
	}
	c, err := Upgrade(w, r, "bireme-agent")
	if err != nil {
		return nil, err
	}
	// The call's own context ends when the handler's connection is taken over; the hub ends the stream at shutdown.
	if err := a.Hub.Serve(context.WithoutCancel(r.Context()), c, n); err != nil {
		a.Log.Debug("agent's stream ended", "node", n.Name, "err", err)
	}
	return nil, nil
}

// StepStream is a node's end of a step's streams. It ends with the node's key.
func (a *Streams) StepStream(w http.ResponseWriter, r *http.Request, _ *call.Caller) (any, error) {
	n, err := a.AgentOf(r)
	if err != nil {
		return nil, err
	}
	ctx, leave := a.Open.Open(r.Context(), &call.Caller{Identity: core.Identity{Node: n.Name}}, false, n.Key)
	defer leave()
	if answer, ok := w.(*call.Answer); ok {
		answer.Ctx = ctx
	}
	if _, _, err := a.Identity.NodeOf(r); err != nil { // it was revoked a moment ago
		return nil, err
	}
	return nil, a.joined(a.Streams.Step(r.PathValue("key"), n.Name,
		func() (net.Conn, error) { return Upgrade(w, r, "bireme-stream") }))
}

// SrunStream is srun's end.
func (a *Streams) SrunStream(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	return a.srunEnd(w, r, r.PathValue("key"), who, false)
}

func (a *Streams) srunEnd(w http.ResponseWriter, r *http.Request, key string, who *call.Caller, again bool) (
	any, error,
) {
	return nil, a.joined(a.Streams.Srun(key, who.Identity, again,
		func() (net.Conn, error) { return Upgrade(w, r, "bireme-stream") }))
}

// srunTimeout is how long who would watch a running step waits for its srun, which is on its way or never was there.
const srunTimeout = 3 * time.Second

// stepOf is a step of a job's present attempt, or nil.
func stepOf(snap *state.Snapshot, j *core.Job, step string) *core.Step {
	for _, s := range snap.Steps(j.ID) {
		if stepName(s.ID) == step && s.Attempt == j.Attempt {
			return s
		}
	}
	return nil
}

// AttachStep is the end of somebody who watches a step.
func (a *Streams) AttachStep(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	j, err := a.Jobs.One(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("step"), 10, 32)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "%q is not a step number", r.PathValue("step")).Because("invalid_job_id")
	}
	if snap, serr := a.Snapshot(); serr == nil {
		if st := stepOf(snap, j, r.PathValue("step")); st != nil && !st.State.Final() {
			ctx, cancel := context.WithTimeout(r.Context(), srunTimeout)
			a.Streams.Await(ctx, j.ID, int32(id))
			cancel()
		}
	}
	open := func() (net.Conn, error) {
		a.Saw(who, j)
		return Upgrade(w, r, "bireme-stream")
	}
	return nil, a.joined(a.Streams.Watch(j.ID, int32(id), who.Identity, open))
}

// ResumeStep is srun's end again: of a step that was made before this server was started.
func (a *Streams) ResumeStep(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	ref, err := selection.ParseRef(r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	key := r.URL.Query().Get("key")
	if len(key) < 32 {
		return nil, core.Errorf(core.Invalid, "the step's one-time key is missing")
	}
	j, ok := v.Job(ref.Id)
	if ok && who.User != j.Spec.User && !who.Admin {
		return nil, core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
	}
	var st *core.Step
	if ok {
		st = stepOf(v.Snap, j, r.PathValue("step"))
	}
	if st == nil {
		return nil, core.Errorf(core.NotFound, "step %s.%s does not run", r.PathValue("id"), r.PathValue("step")).
			Because("invalid_job_id")
	}
	a.Streams.Again(key, st, j.Spec.User, a.Steps.whenForsaken(j, st, selection.IsSet(r.URL.Query().Get("owns"))))
	a.Hub.OpenStreams(st, key)
	if st.State.Final() { // how it ended may have been lost on its way
		a.Streams.Ended(st)
	}
	return a.srunEnd(w, r, key, who, true)
}

// joined keeps errors of a stream that was opened from being answered on it.
func (a *Streams) joined(err error) error {
	//nolint:errorlint // a stream's own errors wrap a refusal by the other end, which is none of this call
	if _, refused := err.(*core.Error); err == nil || refused {
		return err
	}
	a.Log.Debug("step's stream ended", "err", err)
	return call.ErrAnswered
}

// JobLogs writes a job's output from an offset; with follow until the job is over.
func (a *Streams) JobLogs(w http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	_, j, err := a.Jobs.Own(r, who)
	if err != nil {
		return nil, err
	}
	a.Saw(who, j)
	q := r.URL.Query()
	offset, err := call.Number(q.Get("offset"), 0)
	if err != nil {
		return nil, err
	}
	attempt, err := call.Number(q.Get("attempt"), int64(j.Attempt))
	if err != nil {
		return nil, err
	}
	key := logstore.Key{Job: j.ID, Attempt: int32(attempt)}
	var done <-chan struct{}
	if selection.IsSet(q.Get("follow")) {
		if attempt == 0 { // it has not started: there is nothing to follow until it has
			if key.Attempt, err = a.awaitStart(r, who, j); err != nil {
				return nil, err
			}
		}
		var stop func()
		done, stop = a.logDone(r.Context(), j, key.Attempt)
		defer stop()
	}
	first, _, err := a.Logs.Range(key)
	if err != nil {
		return nil, err
	}
	w.Header().Set("Content-Type", call.Octets)
	w.Header().Set("Bireme-Log-Offset", strconv.FormatInt(max(offset, first), 10))
	w.WriteHeader(http.StatusOK)
	rc := http.NewResponseController(w)
	flush := func() { _ = rc.Flush() } // a caller that left is seen by the next write
	if done != nil {
		flush()
	}
	if err := a.Logs.Copy(r.Context(), w, key, offset, done, flush); err != nil {
		a.Log.Debug("log not sent to its end", "job", j.ID, "err", err)
		return nil, call.ErrAnswered
	}
	return nil, nil
}

// logTrail is how long after a job's end, or after the last of its output came, more may take to come: a node may have
// gigabytes of it to send yet. A log that came to its end wakes its followers by itself; this is for those whose node
// is gone.
const logTrail = 5 * time.Second

// trail is how much longer the output of a job that ended may take to come; 0 or less: no more is to be expected.
func (a *Streams) trail(key logstore.Key, end time.Time) time.Duration {
	st, err := os.Stat(a.Logs.Path(key))
	if err != nil {
		return logTrail - time.Since(end)
	}
	return trailOf(end, st.ModTime(), time.Now())
}

// trailOf is trail of a log that was last written to at a moment. One in the future says that the clock was set back:
// followers would wait until then, each write making it later.
func trailOf(end, written, now time.Time) time.Duration {
	if written.After(end) && !written.After(now) {
		end = written
	}
	return logTrail - now.Sub(end)
}

// logDone returns a channel that is closed when nothing more of an attempt's output is to be expected.
func (a *Streams) logDone(ctx context.Context, j *core.Job, attempt int32) (<-chan struct{}, func()) {
	done, over := make(chan struct{}), make(chan struct{})
	key := logstore.Key{Job: j.ID, Attempt: attempt}
	if j.State.Final() && a.isOver(j.ID, attempt) && a.trail(key, j.End.Go()) <= 0 {
		close(done)
		return done, func() {}
	}
	unwatch := a.Watch.WhenOver(j.ID, over, func() bool { return a.isOver(j.ID, attempt) })
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
		for end := time.Now(); ; {
			wait := a.trail(key, end)
			if wait <= 0 {
				return
			}
			select {
			case <-time.After(wait):
			case <-a.Watch.End:
				return
			case <-ctx.Done():
				return
			}
		}
	})
	return done, func() { unwatch(); cancel(); wg.Wait() }
}

// isOver reports whether nothing of an attempt's output can follow.
func (a *Streams) isOver(id core.JobID, attempt int32) bool {
	j, live := a.Engine.Snapshot().Job(id)
	return !live || j.Attempt != attempt || j.State.Final() && j.Alloc == nil
}

// awaitStart waits until a pending job starts and gives its attempt; 0 when it ended without.
func (a *Streams) awaitStart(r *http.Request, who *call.Caller, j *core.Job) (int32, error) {
	begun := make(chan struct{})
	started := func() bool {
		now, live := a.Engine.Snapshot().Job(j.ID)
		return !live || now.Attempt > 0
	}
	stop := a.Watch.WhenOver(j.ID, begun, started)
	defer stop()
	select {
	case <-begun:
	case <-r.Context().Done():
		return 0, r.Context().Err()
	}
	v, err := a.Viewer(who)
	if err != nil {
		return 0, err
	}
	now, err := a.Jobs.One(r.Context(), v, strconv.FormatInt(int64(j.ID), 10))
	if err != nil {
		return 0, err
	}
	return now.Attempt, nil
}
