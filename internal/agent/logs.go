package agent

import (
	"errors"
	"sync"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// Bounds of log traffic.
const (
	logPiece  = 128 << 10        // read at once
	logWindow = 1 << 20          // sent and not yet acknowledged, for a log that is alone
	allWindow = 4 << 20          // for all of them, as long as each has a piece
	logWait   = 20 * time.Second // how long a keeper holds back the answer while there is nothing
	shortTail = 1 << 20          // output that is sent before the end it belongs to
)

// diskLimit is what the keeper says when it drops output for want of disk.
const diskLimit = "limits.min_free_disk"

// follower sends one log into the log store: from where the store has it, without gap or repeat.
type follower struct {
	key  wire.Key
	more chan struct{} // something was acknowledged

	mu      sync.Mutex
	acked   int64
	answers int // pieces that the server has dealt with
}

// follow begins to send a log from an offset, unless that is under way.
func (s *session) follow(k wire.Key, from int64) {
	if w := s.sender(k, from); w != nil {
		s.a.ledger.markStream(k)
		s.begin(func() { s.run(w) })
	}
}

// sender makes the follower of a log; nil: it has one.
func (s *session) sender(k wire.Key, from int64) *follower {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := nameOf(k)
	if s.logs[n] != nil {
		return nil
	}
	w := &follower{key: k, acked: from, more: make(chan struct{}, 1)}
	s.logs[n] = w
	return w
}

// sent notes that a log is in the store.
func (s *session) sent(w *follower) {
	s.a.ledger.logged(w.key)
	s.mu.Lock()
	delete(s.logs, nameOf(w.key))
	s.mu.Unlock()
}

// window is how much of one log may be under way: what matters more than output waits behind all of it.
func (s *session) window() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(0, min(logWindow, allWindow/int64(max(1, len(s.logs)))-logPiece))
}

// logAck notes how far the store has a log.
func (s *session) logAck(ack wire.LogAck) {
	s.mu.Lock()
	w := s.logs[nameOf(ack.Key)]
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.mu.Lock()
	w.acked = max(w.acked, ack.Offset)
	w.answers++
	w.mu.Unlock()
	poke(w.more)
}

func (w *follower) have() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

func (w *follower) answered() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers
}

// run reads from the keeper and sends to the server until the log is complete or the session ends.
func (s *session) run(w *follower) {
	at, dropping := w.have(), ""
	for {
		for at-w.have() > s.window() {
			if !s.wait(w.more) {
				return
			}
		}
		at = max(at, w.have()) // the store had more than we knew
		l, data, err := s.readLog(w.key, at, w.have(), logWait)
		if errors.Is(err, errNoKeeper) {
			if !s.pause(200 * time.Millisecond) { // another keeper is on its way
				return
			}
			continue
		}
		if err != nil {
			return
		}
		if l.Error != "" && s.a.ledger.isRunning(w.key) {
			if !s.pause(200 * time.Millisecond) {
				return
			}
			continue
		}
		at = max(at, l.Offset) // the keeper has given up what the store said it has
		if l.Dropping == diskLimit && dropping != l.Dropping {
			s.a.problem(false, "output of runs is dropped: the node's disk is nearly full ("+diskLimit+")")
		}
		dropping = l.Dropping
		gone := l.Error != "" // the keeper has forgotten it: nothing more to send
		last := gone || l.Ended && at+int64(len(data)) >= l.Size
		if len(data) > 0 || last {
			s.send(wire.TypeLogChunk, wire.LogChunk{Key: w.key, Offset: at, End: last, Dropping: l.Dropping}, data)
			at += int64(len(data))
		}
		if last {
			if gone {
				s.a.log.Warn("a log ends early", "job", w.key.Job, "step", w.key.Step, "offset", at, "err", l.Error)
			}
			break
		}
	}
	for w.have() < at {
		if !s.wait(w.more) {
			return
		}
	}
	s.sent(w)
}

// output sends the kept end of an ended step's output, unless a follower does. It calls then when all is on its way, or
// cannot be had at once. The end stays with the keeper until the server has answered for every piece.
func (s *session) output(x *wire.Exited, then func()) {
	tell := sync.OnceFunc(then)
	defer tell()
	if !s.a.ledger.lacksOutput(x.Key) {
		return
	}
	w := s.sender(x.Key, x.LogFrom)
	if w == nil {
		return
	}
	pieces := 0
	for at := x.LogFrom; at < x.LogSize; {
		for at-w.have() > s.window() && w.answered() < pieces {
			if !s.wait(w.more) {
				return
			}
		}
		l, data, err := s.readLog(x.Key, at, 0, 0)
		if errors.Is(err, errNoKeeper) {
			tell()
			if !s.pause(200 * time.Millisecond) { // another keeper is on its way
				return
			}
			continue
		}
		if err != nil {
			return // the next session tries again
		}
		if l.Error != "" || len(data) == 0 {
			s.a.log.Debug("output not kept", "job", x.Key.Job, "step", x.Key.Step, "err", l.Error)
			break // the user removed the file
		}
		from := max(at, l.Offset) // the keeper has given up what the store has
		at = from + int64(len(data))
		s.send(wire.TypeLogChunk, wire.LogChunk{Key: x.Key, Offset: from, Tail: true, End: at >= x.LogSize}, data)
		pieces++
	}
	tell()
	for w.answered() < pieces {
		if !s.wait(w.more) {
			return
		}
	}
	s.sent(w)
}

// readLog asks the keeper for a piece of output; what is below free nobody needs any more.
func (s *session) readLog(k wire.Key, at, free int64, wait time.Duration) (wire.Log, []byte, error) {
	var l wire.Log
	f, err := s.a.ledger.call(s.done, wire.TypeReadLog, func(ref uint64) any {
		return wire.ReadLog{Ref: ref, Key: k, Offset: at, Max: logPiece, Wait: wait, Free: free}
	})
	if err != nil {
		return l, nil, err
	}
	return l, f.Payload, f.Decode(&l)
}

func (s *session) wait(on <-chan struct{}) bool {
	select {
	case <-on:
		return true
	case <-s.done:
		return false
	}
}

func (s *session) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.done:
		return false
	}
}

// markStream notes that a launch's output is streamed.
func (l *ledger) markStream(k wire.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r := l.running[nameOf(k)]; r != nil {
		r.stream = true
	}
	if e := l.ended[nameOf(k)]; e != nil {
		e.stream = true
	}
}

// lacksOutput is true for an end whose kept output is still to be sent, and not by the follower of a stream.
func (l *ledger) lacksOutput(k wire.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.ended[nameOf(k)]
	return e != nil && !e.stream && !e.logged
}

// streamed lists the launches known to be streamed.
func (l *ledger) streamed() []wire.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	var keys []wire.Key
	for _, r := range l.running {
		if r.stream {
			keys = append(keys, r.key)
		}
	}
	for _, e := range l.ended {
		if e.stream {
			keys = append(keys, e.exited.Key)
		}
	}
	return keys
}

func (l *ledger) isRunning(k wire.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[nameOf(k)] != nil
}
