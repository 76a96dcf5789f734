package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/sched"
)

// Replayed is what came of a recording.
type Replayed struct {
	Inputs    int64  `json:"inputs"`
	Batches   int64  `json:"batches"`
	Passes    int64  `json:"passes"`
	Starts    int64  `json:"starts"`
	Preempts  int64  `json:"preempts,omitempty"` // jobs preempted
	Different int64  `json:"different"`          // passes that decided otherwise than the recorded ones
	First     string `json:"first,omitempty"`    // of these, in words
}

// replay is a recording being decided again.
type replay struct {
	st   *state.State
	plan *sched.Planner
	// What the planner has been told and not yet taken in: fed[0] is number taken+1.
	fed   []sched.Changes
	taken int64
	out   Replayed
}

// Replay gives a recorded server's inputs to the same rules at the same times and compares what the planner decides
// with what it decided then.
func Replay(name string, r io.Reader) (*Replayed, error) {
	in := bufio.NewReaderSize(r, 1<<20)
	var p replay
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // the server may have died in the middle of its last line
			return &p.out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		var rec state.Record
		if err = json.Unmarshal(line, &rec); err == nil {
			err = p.step(&rec, fmt.Sprintf("%s:%d", name, n))
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
}

func (p *replay) step(rec *state.Record, where string) error {
	if rec.Load != nil {
		p.st = state.New(rec.Load.Config, rec.Load.Image)
		p.plan = sched.New(state.PlannerConfig(rec.Load.Config))
		p.fed, p.taken = nil, 0
		p.plan.Apply(p.st.All())
		return nil
	}
	if p.st == nil {
		return fmt.Errorf("a recording begins with the state it starts from")
	}
	switch {
	case rec.Pass != nil:
		return p.pass(rec, where)
	case rec.Told:
		p.fed = append(p.fed, p.st.PlannerChanges())
	case rec.Seal:
		p.st.Flush()
		p.out.Batches++
	default:
		in, err := rec.Decode()
		if err != nil {
			return err
		}
		p.st.Advance(rec.Now)
		_, _ = p.st.Apply(in) // refusals are decisions too: what they leave unchanged shows in what follows
		p.out.Inputs++
	}
	return nil
}

func (p *replay) pass(rec *state.Record, where string) error {
	var c sched.Changes
	for ; p.taken < rec.Pass.Seen; p.taken++ {
		if len(p.fed) == 0 {
			return fmt.Errorf("the planner knew of news that are not recorded")
		}
		c.Merge(p.fed[0])
		p.fed = p.fed[1:]
	}
	if c.NewConfig != nil {
		p.plan = sched.New(*c.NewConfig)
	}
	p.plan.Apply(c)
	plan := p.plan.Pass(rec.Pass.Now)
	p.out.Passes++
	p.out.Starts += int64(len(plan.Starts))
	p.out.Preempts += int64(len(plan.Preempts))
	if then, now := text(rec.Pass.Starts, rec.Pass.Preempts), text(plan.Starts, plan.Preempts); !bytes.Equal(then, now) {
		if p.out.Different++; p.out.Different == 1 {
			p.out.First = fmt.Sprintf("%s: the planner started %s, and now %s", where, then, now)
		}
	}
	p.st.Advance(rec.Now)
	for i := range rec.Pass.Preempts {
		_, _ = state.Apply(p.st, state.PreemptOf(&rec.Pass.Preempts[i]))
	}
	for i := range rec.Pass.Starts {
		_, _ = state.Apply(p.st, state.StartOf(&rec.Pass.Starts[i]))
	}
	if len(rec.Pass.Starts)+len(rec.Pass.Preempts) > 0 {
		p.fed = append(p.fed, p.st.PlannerChanges())
	}
	return nil
}

// text is a plan in a form that compares; nothing is nothing.
func text(starts []sched.Start, preempts []sched.Preempt) []byte {
	if len(starts)+len(preempts) == 0 {
		return []byte("nothing")
	}
	b, err := json.Marshal(starts)
	if err == nil && len(preempts) > 0 {
		var more []byte
		more, err = json.Marshal(preempts)
		b = append(append(b, " and preempted "...), more...)
	}
	if err != nil {
		return []byte(err.Error())
	}
	return b
}
