package core

import (
	"fmt"
	"slices"
	"strings"
)

// Needs is what has to happen to other jobs before a job may start: what is left of its dependency. What has happened
// is taken off, so that nothing has to be known of jobs that are over.
type Needs struct {
	Any  bool   `json:"any,omitempty"` // one of them is enough
	Left []Need `json:"left"`
}

// Need is one thing to wait for.
type Need struct {
	Kind  NeedKind `json:"kind"`
	Job   JobID    `json:"job,omitempty"`   // the job or array; none for singleton
	Task  int32    `json:"task,omitempty"`  // of the array, plus one; 0: all of it
	Delay Seconds  `json:"delay,omitempty"` // after its start
	// Bad: a task of the array has ended otherwise than well already.
	Bad bool `json:"bad,omitempty"`
	// Failed: it can never happen any more.
	Failed bool `json:"failed,omitempty"`
}

// NeedKind says what of a job is waited for, in Slurm's words.
type NeedKind string

// The kinds.
const (
	NeedAfter      NeedKind = "after"      // it has started, or was canceled
	NeedAfterAny   NeedKind = "afterany"   // it has ended
	NeedAfterOK    NeedKind = "afterok"    // it has ended well
	NeedAfterNotOK NeedKind = "afternotok" // it has ended otherwise
	NeedAfterCorr  NeedKind = "aftercorr"  // for each task, the task of the same index has ended well
	NeedSingleton  NeedKind = "singleton"  // no earlier job of the same name and user is left
)

// Clone copies the needs and their list.
func (n *Needs) Clone() *Needs { return &Needs{Any: n.Any, Left: slices.Clone(n.Left)} }

// Never reports whether the job can never start.
func (n *Needs) Never() bool {
	failed := 0
	for i := range n.Left {
		if n.Left[i].Failed {
			failed++
		}
	}
	return failed > 0 && (!n.Any || failed == len(n.Left))
}

// String lists what is left as Slurm 22.05 does: afterok:43(unfulfilled),afterok:44(failed).
func (n *Needs) String() string {
	if n == nil {
		return ""
	}
	sep := ","
	if n.Any {
		sep = "?"
	}
	var b strings.Builder
	for i := range n.Left {
		x := &n.Left[i]
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(string(x.Kind))
		if x.Job != 0 {
			fmt.Fprintf(&b, ":%d", x.Job)
		}
		if x.Task > 0 {
			fmt.Fprintf(&b, "_%d", x.Task-1)
		}
		if x.Delay > 0 {
			fmt.Fprintf(&b, "+%d", x.Delay/60)
		}
		if x.Failed {
			b.WriteString("(failed)")
		} else {
			b.WriteString("(unfulfilled)")
		}
	}
	return b.String()
}
