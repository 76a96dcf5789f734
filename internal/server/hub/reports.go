package hub

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/server/samples"
	"bireme.dev/bireme/internal/wire"
)

// handleFrame acts on a frame of the agent.
func (k *conn) handleFrame(f wire.Frame) error {
	switch f.Type {
	case wire.TypeHeartbeat:
		var b wire.Heartbeat
		if err := f.Decode(&b); err != nil {
			return err
		}
		k.handleHeartbeat(b)
	case wire.TypeExited:
		x := new(wire.Exited)
		if err := f.Decode(x); err != nil {
			return err
		}
		if len(f.Payload) > 0 {
			c := wire.LogChunk{Key: x.Key, Offset: x.LogFrom, Tail: true, End: true}
			if _, err := k.store(c, f.Payload); err != nil {
				return err
			}
		}
		k.handleExit(x)
	case wire.TypeJobDone:
		var d wire.JobDone
		if err := f.Decode(&d); err != nil {
			return err
		}
		k.handleJobDone(d)
	case wire.TypeLogChunk:
		var c wire.LogChunk
		if err := f.Decode(&c); err != nil {
			return err
		}
		have, err := k.store(c, f.Payload)
		if err != nil {
			return err
		}
		k.queue(order{typ: wire.TypeLogAck, header: wire.LogAck{Key: c.Key, Offset: have}})
	case wire.TypeSample:
		var s wire.Sample
		if err := f.Decode(&s); err != nil {
			return err
		}
		k.handleSample(&s, slices.Clone(f.Payload))
	case wire.TypeDoing:
		var d wire.Doing
		if err := f.Decode(&d); err != nil {
			return err
		}
		k.handleProgress(d)
	case wire.TypeHealth:
		var m wire.Health
		if err := f.Decode(&m); err != nil {
			return err
		}
		k.handleHealth(&m)
	case wire.TypeVolumeDone:
		var d wire.VolumeDone
		if err := f.Decode(&d); err != nil {
			return err
		}
		volumeConn{k}.done(d)
	case wire.TypeProblem:
		var p wire.Problem
		if err := f.Decode(&p); err != nil {
			return err
		}
		k.handleProblem(p)
	case wire.TypeReply:
		var r wire.Reply
		if err := f.Decode(&r); err != nil {
			return err
		}
		k.handleReply(r)
	case wire.TypeBye:
		return errors.New("the agent stops")
	case wire.TypeUsage:
		var u wire.Usage
		if err := f.Decode(&u); err != nil {
			return err
		}
		k.h.Stats.answer(k.who.Name, &u)
	case wire.TypeStarted, wire.TypeTaskExited:
	default:
		k.h.log.Debug("frame of an unknown type", "node", k.who.Name, "type", int(f.Type)) // a newer agent
	}
	return nil
}

func (k *conn) handleHeartbeat(b wire.Heartbeat) {
	k.beats++
	// The answer renews the node's fences from when the heartbeat was sent, which was before this question: whoever leads
	// next counts the node's silence from later.
	if !k.h.engine.HoldsLease() {
		return
	}
	now := time.Now()
	if b.Now != 0 {
		k.skew = b.Now.Go().Sub(now)
	}
	h := k.h
	h.mu.Lock()
	n := h.node(k.who.Name)
	back := false
	if n.conn == k {
		back, n.silent = n.silent, false
		n.heard, n.beat = now, b
		if b.Now != 0 {
			n.skew = b.Now.Go().Sub(now)
		}
	}
	h.mu.Unlock()
	k.queue(order{typ: wire.TypePong, header: wire.Pong{Seq: k.beats}})
	if back {
		k.report(&state.NodeSilence{Node: k.who.Name, Back: true}, nil)
	}
}

// store puts a piece of output into the log store and gives how far that has it. An error means that the job cannot be
// looked up now: the agent keeps the output and sends it again on its next connection.
func (k *conn) store(c wire.LogChunk, data []byte) (int64, error) {
	key := logstore.Key{Job: c.Key.Job, Attempt: c.Key.Attempt}
	if c.Key.Step != wire.BatchStep {
		return c.Offset + int64(len(data)), nil // only batch output is kept
	}
	of, ok, err := k.logOf(key)
	if err != nil {
		return 0, fmt.Errorf("look up job %d, whose output this is: %w", c.Key.Job, err)
	}
	if !ok {
		k.h.log.Warn("output of a job that is not the node's", "job", c.Key.Job, "node", k.who.Name)
		return c.Offset + int64(len(data)), nil
	}
	k.h.dropping(key, c.Dropping)
	have, err := k.h.logs.Append(key, of.owner, c.Offset, data, c.Tail)
	if err != nil {
		k.h.log.Warn("output not kept", "job", c.Key.Job, "node", k.who.Name, "err", err)
		return c.Offset + int64(len(data)), nil // output is not worth stopping a job for
	}
	if c.End && have >= c.Offset+int64(len(data)) {
		k.h.logs.End(key)
		delete(k.late, key)
	}
	return have, nil
}

// lateLog is what is needed of a job to take its output.
type lateLog struct {
	owner  core.UserName
	stream bool // the log is all of its output, not the kept end of a file
}

// logOf finds the job that a log is of, if an attempt of it is, or was, the node's: nobody writes into the output of
// others' jobs.
func (k *conn) logOf(key logstore.Key) (l lateLog, ok bool, err error) {
	if l, ok = k.late[key]; ok {
		return l, true, nil
	}
	k.h.mu.Lock()
	t := k.h.jobs[key.Job]
	k.h.mu.Unlock()
	var j *core.Job
	if t != nil {
		j = t.job
	} else if live, ok := k.h.engine.Snapshot().Job(key.Job); ok {
		j = live // it waits again
	} else if k.h.cfg.Ended != nil {
		if j, err = k.h.cfg.Ended(k.ctx, key.Job); err != nil {
			return l, false, err
		}
	}
	if j == nil || !ranOn(j, key.Attempt, k.who.Name) {
		return l, false, nil
	}
	return lateLog{owner: j.Spec.User, stream: j.Spec.IO.Stream}, true, nil
}

// ranOn is true for a node that an attempt of a job has, or had.
func ranOn(j *core.Job, attempt int32, node core.NodeName) bool {
	if j.Attempt == attempt {
		return allocOn(j, node) != nil
	}
	if j.Earlier != nil {
		for i := range j.Earlier.Attempts {
			if a := &j.Earlier.Attempts[i]; a.Attempt == attempt {
				old := j.As(a)
				return allocOn(&old, node) != nil
			}
		}
	}
	return false
}

// maxLate bounds the ended jobs whose output a connection waits for; of others the store is asked.
const maxLate = 1 << 12

func (k *conn) handleExit(x *wire.Exited) {
	k.logEnd(x)
	in, key := k.endOf(x), x.Key
	k.report(in, func() { k.ack(key) })
	k.epilog(x)
}

// endOf is a step's end in the engine's words.
func (k *conn) endOf(x *wire.Exited) *state.Exited {
	in := &state.Exited{
		Node: k.who.Name, Job: x.Key.Job, Attempt: x.Key.Attempt, Step: x.Key.Step,
		Exit:  core.Exit{Code: int32(x.ExitCode), Signal: int32(x.Signal)},
		Cause: causeOf(x.Cause), Message: x.Message,
		Usage: core.Usage{
			User:   time.Duration(x.Usage.UserCPU) * time.Microsecond,
			Sys:    time.Duration(x.Usage.SysCPU) * time.Microsecond,
			MaxRSS: core.Bytes(x.Usage.MaxRSS),
		},
		Elapsed: x.Elapsed, JobDone: x.JobDone, Image: x.Image, Ranks: x.Ranks,
	}
	if x.At != 0 {
		in.At = x.At.Add(-k.skew) // by the server's clock
	}
	if k.h.cfg.Samples != nil {
		k.h.cfg.Samples.Use(samples.Key{Job: in.Job, Attempt: in.Attempt}, &in.Usage)
	}
	return in
}

func (k *conn) epilog(x *wire.Exited) {
	if x.EpilogFailed != "" {
		k.handleProblem(wire.Problem{Drain: true, Reason: "Epilog error"})
	}
}

// logEnd tells followers of a job's output that nothing follows, when the store has it to its end. It returns how far
// the store has the log of a job whose output is streamed.
func (k *conn) logEnd(x *wire.Exited) (have int64, stream bool) {
	if x.Key.Step != wire.BatchStep {
		return 0, false
	}
	key := logstore.Key{Job: x.Key.Job, Attempt: x.Key.Attempt}
	of, ok, err := k.logOf(key)
	if err != nil {
		k.h.log.Warn("whose output is it?", "job", key.Job, "node", k.who.Name, "err", err)
	}
	if !ok {
		return 0, false
	}
	if x.LogSize > x.LogFrom {
		if have, err = k.h.logs.Have(key); err != nil || have < x.LogSize {
			if len(k.late) < maxLate {
				k.late[key] = of // the job may have left memory when the rest comes
			}
			return have, of.stream && err == nil
		}
	}
	k.h.logs.End(key)
	return have, of.stream
}

// causeOf translates the keeper's word into the engine's.
func causeOf(c wire.Cause) state.ExitCause {
	// a program that cannot be executed ends with its errno, as in Slurm
	if c == wire.CauseNone || c == wire.CauseExecFailed {
		return state.CauseExit
	}
	return state.ExitCause(c) // the others are spelt alike
}

func (k *conn) handleJobDone(d wire.JobDone) {
	if d.Mounted { // nobody else gets the volume before it is gone from here
		k.handleProblem(wire.Problem{Drain: true, Reason: "Volume cannot be unmounted"})
		return
	}
	if d.Unkillable != "" {
		k.handleProblem(wire.Problem{Drain: true, Reason: "Kill task failed"})
	}
	if d.EpilogFailed != "" {
		k.handleProblem(wire.Problem{Drain: true, Reason: "Epilog error"})
	}
	id := d.Job
	k.report(&state.NodeDone{Node: k.who.Name, Job: id, Attempt: d.Attempt}, nil)
}

func (k *conn) handleProblem(p wire.Problem) {
	k.h.log.Warn("node reports a problem", "node", k.who.Name, "reason", p.Reason, "drain", p.Drain)
	if p.Reboot {
		k.report(&state.UpdateNode{Node: k.who.Name, State: core.VerbRebootFailed, Reason: p.Reason, System: true}, nil)
	}
	if p.Drain {
		k.report(&state.UpdateNode{Node: k.who.Name, State: core.VerbDrain, Reason: p.Reason, System: true}, nil)
	}
}

// handleReply takes the answer to a kill: a job that is not there has nothing to end, only to be cleaned.
func (k *conn) handleReply(r wire.Reply) {
	if r.Code == "" || r.Ref == 0 {
		return
	}
	k.h.log.Debug("order refused", "node", k.who.Name, "job", r.Ref, "err", r.Error)
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	if t := k.h.jobs[core.JobID(r.Ref)]; t != nil && over(t.job) && core.Code(r.Code) == core.NotFound {
		k.queue(finish(t.job))
	}
}

// report is an input under way to the engine.
type report struct {
	in   state.Command[state.None]
	sent *engine.Pending[state.None] // nil: it could not be sent
	done func()
}

// report sends an input to the engine; done is called after its commit. Reports are applied in the order they came, and
// many of them in one commit.
func (k *conn) report(in state.Command[state.None], done func()) {
	p, err := engine.Send(k.ctx, k.h.engine, in)
	if err != nil {
		p = nil // the waiter tries again
	}
	select {
	case k.reports <- report{in, p, done}:
	case <-k.ctx.Done():
	}
}

// commitReports waits for the engine's answers until the connection ends or reports is closed. What fails for want of a
// store is tried again as long as the connection lives, and is in the next hello otherwise.
func (k *conn) commitReports() error {
	for {
		select {
		case r, open := <-k.reports:
			if !open {
				return nil
			}
			if k.commit(r) && r.done != nil {
				r.done()
			}
		case <-k.ctx.Done():
			return nil
		}
	}
}

// commit waits until the engine has taken a report or refused it for good.
func (k *conn) commit(r report) bool {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		var err error
		if r.sent != nil {
			_, err = r.sent.Wait(k.ctx)
			r.sent = nil
		} else {
			_, err = engine.Urgent(k.ctx, k.h.engine, r.in)
		}
		switch {
		case err == nil:
			return true
		case k.ctx.Err() != nil:
			return false
		case core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.Exhausted:
			k.h.log.Warn("report refused", "node", k.who.Name, "input", fmt.Sprintf("%+v", r.in), "err", err)
			return true
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-k.ctx.Done():
			t.Stop()
			return false
		}
	}
}
