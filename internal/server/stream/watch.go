package stream

import (
	"context"
	"encoding/json"
	"net"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// watchTimeout is how long a watcher may take no bytes before it is let go: the step waits for it meanwhile.
const watchTimeout = 5 * time.Second

// Await waits until the streams of a step are there to be watched, or ctx ends: a step is seen to run before its srun
// has come, or come back to a server that was started since.
func (x *Exchange) Await(ctx context.Context, job core.JobID, step int32) {
	for {
		x.mu.Lock()
		there, news := x.byStep[stepID{job, step}] != nil, x.news
		x.mu.Unlock()
		if there {
			return
		}
		select {
		case <-news:
		case <-ctx.Done():
			return
		}
	}
}

// Watch joins somebody who watches a step to its streams. accept is called when they may and gives the connection; the
// call returns when they leave, or the streams are over.
func (x *Exchange) Watch(job core.JobID, step int32, who core.Identity, accept func() (net.Conn, error)) error {
	x.mu.Lock()
	s := x.byStep[stepID{job, step}]
	if s == nil || x.closed {
		x.mu.Unlock()
		return core.Errorf(core.NotFound, "step %d.%d has no srun, or does not run", job, step).Because("invalid_job_id")
	}
	x.ends.Add(1)
	x.mu.Unlock()
	defer x.ends.Done()
	if who.User != s.owner && !who.Admin {
		return core.Errorf(core.Denied, "the step is %s's", s.owner).Because("access_denied")
	}
	srun, err := s.waitSrun()
	if err != nil {
		return core.Errorf(core.NotFound, "step %d.%d is over", job, step).Because("invalid_job_id")
	}
	raw, err := accept()
	if err != nil {
		return err
	}
	c := wire.NewConn(&hasty{raw})
	defer c.Close()
	s.watch(srun, c, true)
	defer s.watch(srun, c, false)
	gone := make(chan struct{})
	defer close(gone)
	go func() { // ends with the session or with the watcher
		select {
		case <-s.over: // it hangs up when it has read that
			_ = c.Send(wire.TypeBye, nil)
			_ = raw.SetReadDeadline(time.Now().Add(s.x.patience.Trail))
		case <-gone:
		}
	}()
	for {
		f, err := c.Next()
		if err != nil {
			return nil
		}
		if f.Type == wire.TypeInput && len(f.Payload) > 0 { // the end of the input is srun's to tell
			if err := srun.Send(f.Type, json.RawMessage(f.Header), f.Payload); err != nil {
				return nil
			}
		}
	}
}

// watch notes that a watcher came or left, and tells srun: in turn, so that the last it hears is how things stand. An
// srun that does not read holds up its watchers and nobody else.
func (s *session) watch(srun, c *wire.Conn, here bool) {
	s.telling.Lock()
	defer s.telling.Unlock()
	s.mu.Lock()
	if here {
		s.watchers[c] = true
	} else {
		delete(s.watchers, c)
	}
	n := len(s.watchers)
	s.mu.Unlock()
	_ = srun.Send(wire.TypeWatched, wire.Watched{Watchers: n}) // a break shows in its reader
}

// toWatchers passes a copy on. Who does not take it is let go.
func (s *session) toWatchers(f wire.Frame) {
	s.mu.Lock()
	list := make([]*wire.Conn, 0, len(s.watchers))
	for c := range s.watchers {
		list = append(list, c)
	}
	s.mu.Unlock()
	for _, c := range list {
		if c.Send(f.Type, json.RawMessage(f.Header), f.Payload) != nil {
			_ = c.Close()
		}
	}
}

// hasty is a connection whose writes do not wait forever.
type hasty struct{ net.Conn }

func (h *hasty) Write(b []byte) (int, error) {
	_ = h.SetWriteDeadline(time.Now().Add(watchTimeout))
	return h.Conn.Write(b)
}
