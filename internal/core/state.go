package core

import (
	"fmt"
	"strings"
)

// JobState is where a job is in its life. The numbers are stored; never renumber.
type JobState uint8

// The states, numbered as Slurm numbers its base states.
const (
	Pending JobState = iota
	Running
	Suspended
	Completed
	Cancelled
	Failed
	Timeout
	NodeFail
	Preempted
	BootFail
	DeadlineMissed
	OutOfMemory
)

var jobStates = [...]struct{ name, short string }{
	{"PENDING", "PD"},
	{"RUNNING", "R"},
	{"SUSPENDED", "S"},
	{"COMPLETED", "CD"},
	{"CANCELLED", "CA"},
	{"FAILED", "F"},
	{"TIMEOUT", "TO"},
	{"NODE_FAIL", "NF"},
	{"PREEMPTED", "PR"},
	{"BOOT_FAIL", "BF"},
	{"DEADLINE", "DL"},
	{"OUT_OF_MEMORY", "OOM"},
}

// Phrase says in a sentence's words what became of a job: "job 5 " and then "is running", "failed".
func (s JobState) Phrase() string {
	switch s {
	case Completed, Failed:
		return strings.ToLower(s.String())
	case Cancelled, Preempted:
		return "was " + strings.ToLower(s.String())
	case Timeout:
		return "timed out"
	case NodeFail:
		return "failed with its node"
	case BootFail:
		return "failed when its nodes booted"
	case DeadlineMissed:
		return "missed its deadline"
	case OutOfMemory:
		return "ran out of memory"
	default:
		return "is " + strings.ToLower(s.String())
	}
}

// String is the long name, as Slurm prints it.
func (s JobState) String() string {
	if int(s) < len(jobStates) {
		return jobStates[s].name
	}
	return fmt.Sprintf("STATE_%d", uint8(s))
}

// Short is the two- or three-letter code.
func (s JobState) Short() string {
	if int(s) < len(jobStates) {
		return jobStates[s].short
	}
	return "?"
}

// Final reports whether the job has ended.
func (s JobState) Final() bool { return s >= Completed }

// ParseJobState finds a state by its long or short name, any case.
func ParseJobState(text string) (JobState, bool) {
	for i, n := range jobStates {
		if equalFold(text, n.name) || equalFold(text, n.short) {
			return JobState(i), true
		}
	}
	return 0, false
}

// MarshalText writes the long name, so that JSON stays readable.
func (s JobState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name.
func (s *JobState) UnmarshalText(b []byte) error {
	v, ok := ParseJobState(string(b))
	if !ok {
		return fmt.Errorf("%q is not a job state", b)
	}
	*s = v
	return nil
}

// next lists the states that may follow each state. Cancelled may follow a final state only through requeue and back.
var next = map[JobState][]JobState{
	Pending: {Running, Cancelled, Failed, DeadlineMissed, BootFail},
	Running: {
		Completed, Cancelled, Failed, Timeout, NodeFail, Preempted, BootFail, OutOfMemory, Suspended, Pending,
		DeadlineMissed,
	},
	Suspended: {Running, Completed, Cancelled, Failed, Timeout, NodeFail, Preempted, OutOfMemory, Pending, DeadlineMissed},
}

// MayBecome reports whether a job may go from s to t. A final state goes back to Pending by requeue only.
func (s JobState) MayBecome(t JobState) bool {
	if s.Final() {
		return t == Pending
	}
	for _, n := range next[s] {
		if n == t {
			return true
		}
	}
	return false
}

// JobFlag is a bit beside the state.
type JobFlag uint16

// The flags.
const (
	Completing    JobFlag = 1 << iota // it has ended but holds something on a node
	Configuring                       // nodes are being made ready
	HeldUser                          // its owner holds it
	HeldAdmin                         // an administrator holds it
	Requeueing                        // it goes back to Pending when its nodes are clean
	RequeueHold                       // it goes back held
	CancelAsked                       // somebody asked for its end; see Job.Stop
	HeldRequeues                      // held because it was requeued too often
	FixedPriority                     // somebody gave it its priority; policy leaves it alone
	Shelved                           // an administrator suspended it: its CPUs are anybody's, also while it is cleaned up
	SpecialExit                       // it was requeued, held, for somebody to look at
	ScriptEnded                       // its script has ended without usage, and its first node is not clean yet
)

// Has reports whether all bits of g are set.
func (f JobFlag) Has(g JobFlag) bool { return f&g == g }

// Any reports whether some bit of g is set.
func (f JobFlag) Any(g JobFlag) bool { return f&g != 0 }

// Held reports whether anybody or anything holds the job.
func (f JobFlag) Held() bool { return f.Any(HeldUser | HeldAdmin | HeldRequeues) }

func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if 'a' <= x && x <= 'z' {
			x -= 32
		}
		if 'a' <= y && y <= 'z' {
			y -= 32
		}
		if x != y {
			return false
		}
	}
	return true
}
