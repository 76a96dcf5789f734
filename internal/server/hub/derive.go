package hub

import (
	"slices"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// order is something to tell an agent: a job's own launch, whose frame is made by the writer because its blobs may have
// to be fetched, or a frame.
type order struct {
	launch  *core.Job
	typ     wire.Type
	header  any
	payload [][]byte
}

// told is how far the end of a job has been ordered.
type told uint8

const (
	toldNothing told = iota
	toldKill         // its processes were asked to end
	toldFinish       // its nodes were asked to be clean
)

// over reports whether nothing of the job should continue: it has ended, or goes back to the queue when its nodes are
// clean.
func over(j *core.Job) bool { return j.State.Final() || j.Flags.Has(core.Requeueing) }

// derive returns the orders that follow from a job's change from old (nil: not known before) to j, and how far its end
// has been ordered with them. busy reports whether steps of it may still run.
func derive(old, j *core.Job, t told, steps []*core.Step, emit func(core.NodeName, order)) told {
	busy := busy(j, steps)
	if j.Alloc == nil || !j.Live() {
		return toldNothing
	}
	if old != nil && (old.Alloc == nil || old.Attempt != j.Attempt) {
		old, t = nil, toldNothing
	}
	if over(j) {
		switch {
		case !busy && t != toldFinish:
			each(j, emit, finish(j))
			return toldFinish
		case busy && t == toldNothing:
			each(j, emit, kill(j))
			return toldKill
		case busy && t == toldKill && hastened(old, j):
			each(j, emit, kill(j))
		}
		return t
	}
	if old == nil {
		// The first last: what runs there waits for the others.
		for i := len(j.Alloc.Nodes) - 1; i >= 0; i-- {
			if na := &j.Alloc.Nodes[i]; !na.Done && holder(j, na.Node) != "" {
				emit(na.Node, order{launch: j})
			}
		}
	}
	leave(old, j, emit)
	if j.State == core.Suspended && (old == nil || old.State != core.Suspended) {
		each(j, emit, suspend(j, false))
	} else if old != nil && old.State == core.Suspended && j.State == core.Running {
		each(j, emit, suspend(j, true))
	}
	if old != nil && old.Spec.TimeLimit != j.Spec.TimeLimit {
		each(j, emit, setLimit(j, steps))
	}
	return toldNothing
}

// hastened reports whether a job that is being ended is now to end without its grace.
func hastened(old, j *core.Job) bool {
	return j.Stop != nil && j.Stop.Abort && old != nil && (old.Stop == nil || !old.Stop.Abort)
}

// leave ends what may still run of a job that continues, on nodes that it has lost.
func leave(old, j *core.Job, emit func(core.NodeName, order)) {
	if old == nil || old.Alloc == j.Alloc {
		return
	}
	end := wire.Finish{Job: j.ID, Attempt: j.Attempt, Left: true}
	each(old, func(name core.NodeName, o order) {
		if !slices.ContainsFunc(j.Alloc.Nodes, func(na core.NodeAlloc) bool { return na.Node == name }) {
			emit(name, o)
		}
	}, order{typ: wire.TypeFinish, header: end})
}

// busy reports whether steps of j may still run: its batch step until its node is clean (the keeper cleans up with it)
// or, where other steps outlive it, until its end is known; its numbered steps until they have ended.
func busy(j *core.Job, steps []*core.Step) bool {
	if j.Alloc == nil {
		return false
	}
	ended := j.Flags.Has(core.ScriptEnded) || over(j) && j.Usage != (core.Usage{})
	if j.Spec.Batches() && !j.Alloc.Nodes[0].Done && !ended {
		return true
	}
	for _, s := range steps {
		if !s.State.Final() && s.Attempt == j.Attempt {
			return true
		}
	}
	return false
}

// rejoin returns the orders for one node that has just told what it has: runs and knows tell about steps of the job.
func rejoin(j *core.Job, steps []*core.Step, node core.NodeName, runs bool, knows func(step string) bool,
	emit func(order),
) {
	switch {
	case over(j) && runs:
		emit(kill(j))
	case over(j):
		emit(finish(j))
	case holder(j, node) != "" && !knows(holder(j, node)):
		emit(order{launch: j})
		if j.State == core.Suspended {
			emit(suspend(j, false))
		}
	case runs: // what may have changed while the node was away
		emit(setLimit(j, steps))
		emit(suspend(j, j.State != core.Suspended))
	}
}

// each emits o for every node that is not clean of the job.
func each(j *core.Job, emit func(core.NodeName, order), o order) {
	for i := range j.Alloc.Nodes {
		if na := &j.Alloc.Nodes[i]; !na.Done {
			emit(na.Node, o)
		}
	}
}

func finish(j *core.Job) order {
	return order{typ: wire.TypeFinish, header: wire.Finish{Job: j.ID, Attempt: j.Attempt}}
}

func suspend(j *core.Job, resume bool) order {
	return order{typ: wire.TypeSuspend, header: wire.Suspend{Job: j.ID, Attempt: j.Attempt, Resume: resume}}
}

func setLimit(j *core.Job, steps []*core.Step) order {
	set := wire.SetLimit{Job: j.ID, Attempt: j.Attempt, Limit: limit(j.Spec.TimeLimit)}
	for _, st := range steps {
		if st.Options.TimeLimit == 0 || st.State.Final() || st.Attempt != j.Attempt {
			continue
		}
		if set.Steps == nil {
			set.Steps = map[string]time.Duration{}
		}
		set.Steps[strconv.Itoa(int(st.ID))] = stepLimit(j, st)
	}
	return order{typ: wire.TypeSetLimit, header: set}
}

// stepLimit is how long a step may last from its start: no longer than its job.
func stepLimit(j *core.Job, st *core.Step) time.Duration {
	own, left := limit(st.Options.TimeLimit), limit(j.Spec.TimeLimit)
	if left > 0 { // the job's clock ran before the step began
		left = max(1, left-j.Elapsed(st.Start))
	}
	if own == 0 || left > 0 && left < own {
		return left
	}
	return own
}

// kill asks for the end of a job's processes. Its Ref is the job, so that the answer "there is none" is understood.
func kill(j *core.Job) order {
	k := wire.Kill{Ref: uint64(j.ID), Job: j.ID, Attempt: j.Attempt, Cause: wire.CauseCancelled}
	if j.Stop != nil {
		k.Grace = j.Stop.Grace.Duration()
	}
	switch {
	case j.State == core.Timeout:
		k.Cause, k.Notice = wire.CauseTimeout, "DUE TO TIME LIMIT"
	case j.State == core.Preempted, j.Stop != nil && j.Stop.As == core.Preempted:
		k.Notice = "DUE TO PREEMPTION"
		w := j.Spec.More().Signal
		k.Warn = w != nil && w.All // a run says by it how it is told to save its work
	case j.Flags.Has(core.Requeueing):
		k.Notice = "DUE TO JOB REQUEUE"
	case j.State == core.NodeFail:
		k.Notice = "DUE TO NODE FAILURE"
	}
	return order{typ: wire.TypeKill, header: k}
}

// limit is a time limit as keepers count it: zero means none.
func limit(s core.Seconds) time.Duration {
	if s <= 0 || s >= core.Forever {
		return 0
	}
	return s.Duration()
}
