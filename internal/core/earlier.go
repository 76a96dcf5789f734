package core

import "time"

// Earlier is what is kept of a job's attempts that went back to the queue, oldest first.
type Earlier struct {
	Attempts []Attempt `json:"attempts"`
}

// MaxEarlier is how many are kept of them: a job that comes again by the clock has no last one.
const MaxEarlier = 20

// Attempt is one that went back to the queue.
type Attempt struct {
	Attempt   int32         `json:"attempt"`
	State     JobState      `json:"state"` // how it ended; Pending: it was sent back while it ran
	Submit    Time          `json:"submit"`
	Eligible  Time          `json:"eligible,omitempty"`
	Start     Time          `json:"start,omitempty"`
	End       Time          `json:"end,omitempty"`
	PausedFor time.Duration `json:"paused_for,omitempty"`
	Exit      Exit          `json:"exit,omitzero"`
	Usage     Usage         `json:"usage,omitzero"`
	Reason    Reason        `json:"reason,omitempty"`
	Message   string        `json:"message,omitempty"`
	Alloc     *Alloc        `json:"alloc,omitempty"`
}

// Remember keeps the attempt that is over among the earlier ones.
func (j *Job) Remember() {
	a := Attempt{
		Attempt: j.Attempt, State: j.State, Submit: j.Submit, Eligible: j.Eligible, Start: j.Start, End: j.End,
		PausedFor: j.PausedFor,
		Exit:      j.Exit, Usage: j.Usage, Reason: j.Reason, Message: j.Message, Alloc: j.Alloc,
	}
	switch {
	case j.State.Final():
	case j.Stop != nil:
		a.State = j.Stop.As
	case j.Reason == ReasonNodeDown:
		a.State = NodeFail
	default:
		a.State = Pending
	}
	var all []Attempt
	if j.Earlier != nil {
		all = j.Earlier.Attempts
	}
	all = append(all[max(0, len(all)+1-MaxEarlier):len(all):len(all)], a) // the old record is others' to read
	j.Earlier = &Earlier{Attempts: all}
}

// Last is the attempt that went back to the queue last; nil: none did.
func (e *Earlier) Last() *Attempt {
	if e == nil || len(e.Attempts) == 0 {
		return nil
	}
	return &e.Attempts[len(e.Attempts)-1]
}

// As is the job as it was when an earlier attempt of it was over.
func (j *Job) As(a *Attempt) Job {
	old := *j
	old.Attempt, old.State, old.Submit, old.Eligible, old.Start, old.End = a.Attempt, a.State, a.Submit, a.Eligible,
		a.Start, a.End
	old.Exit, old.Usage, old.Reason, old.Message, old.Alloc, old.PausedFor = a.Exit, a.Usage, a.Reason, a.Message,
		a.Alloc, a.PausedFor
	old.Flags, old.Paused, old.Stop, old.Earlier = 0, 0, nil, nil
	if a.State == Pending {
		old.State, old.Flags = Running, Requeueing
	}
	return old
}
