package hub

import (
	"errors"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/wire"
)

// openStreams tells an agent of the streams of its steps whose srun waits: one that was started since does not know
// of them.
func (k *conn) openStreams(hello *wire.NodeHello) {
	if k.h.cfg.Stream == nil {
		return
	}
	keys := slices.Clone(hello.Running)
	for i := range hello.Ended { // their last words may not have been heard
		keys = append(keys, hello.Ended[i].Key)
	}
	for _, r := range keys {
		if token := k.h.cfg.Stream(r.Job, r.Step); token != "" {
			k.queue(order{typ: wire.TypeOpenStream, header: wire.OpenStream{Key: r, Token: token}})
		}
	}
}

// attemptKey names an attempt of a job.
type attemptKey struct {
	job     core.JobID
	attempt int32
}

// held is what a node has by its hello, and what is queued for it.
type held struct {
	runs  map[attemptKey]bool
	knows map[wire.Key]bool // steps that run, have ended or are on their way, without their node
}

func heldBy(hello *wire.NodeHello) held {
	h := held{runs: map[attemptKey]bool{}, knows: map[wire.Key]bool{}}
	for _, r := range hello.Running {
		h.runs[attemptKey{r.Job, r.Attempt}] = true
		h.knows[bare(r)] = true
	}
	for i := range hello.Ended {
		h.knows[bare(hello.Ended[i].Key)] = true
	}
	return h
}

// bare is a key without its node.
func bare(k wire.Key) wire.Key { k.Node = ""; return k }

// reconcile queues what follows from the difference between what the node has and what it should have.
func (k *conn) reconcile(hello *wire.NodeHello) {
	for _, st := range k.rejoinAll(heldBy(hello)) {
		k.report(lostStep(st, k.who.Name, "the step was lost before it reached "+string(k.who.Name)), nil)
	}
}

// rejoinAll queues what the jobs of the node need after it came back, and gives the steps that never reached it.
//
// Orders have been queued since k became the node's connection, and none has been sent. What is derived here goes
// before them: the hub's jobs are as those orders made them, and a signal that follows a launch must reach it.
func (k *conn) rejoinAll(has held) (lost []*core.Step) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	snap := k.h.engine.Snapshot() // it has the steps whose launches are queued
	k.keepLaunches(snap, has.knows)
	var derived []order
	for id := range k.h.node(k.who.Name).jobs {
		t := k.h.jobs[id]
		j := t.job
		if now, live := snap.Job(id); !live || now.Attempt != j.Attempt || now.Alloc == nil || over(now) != over(j) {
			continue // the hub has yet to learn of it, and queues what follows then
		}
		rejoin(j, snap.LiveSteps(id), k.who.Name, has.runs[attemptKey{j.ID, j.Attempt}], func(step string) bool {
			return has.knows[wire.Key{Job: j.ID, Attempt: j.Attempt, Step: step}]
		}, func(o order) { derived = append(derived, o) })
		for _, st := range snap.LiveSteps(id) {
			// A step that was launched and that the node does not know never reached it, and nobody has its command any
			// more; or its end there is recorded, and telling it twice changes nothing.
			unlaunched, known := t.steps[st.ID]
			if known && !unlaunched && !st.State.Final() && st.Attempt == j.Attempt &&
				slices.Contains(st.Nodes, k.who.Name) && !has.knows[stepKey(st)] {
				lost = append(lost, st)
			}
			if kill, ok := t.kills[st.ID]; ok && has.runs[attemptKey{j.ID, j.Attempt}] && has.knows[stepKey(st)] {
				derived = append(derived, order{typ: wire.TypeKill, header: kill})
			}
		}
	}
	k.queueFirst(derived)
	return lost
}

// keepLaunches drops the queued launches that registering has made void, and counts the others as known to the node.
// k.h.mu is held.
func (k *conn) keepLaunches(snap *state.Snapshot, knows map[wire.Key]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.orders = slices.DeleteFunc(k.orders, func(o order) bool {
		var key wire.Key
		if j := o.launch; j != nil {
			now, live := snap.Job(j.ID)
			if !live || now.Attempt != j.Attempt || now.Alloc == nil || over(now) {
				return true
			}
			key = wire.Key{Job: j.ID, Attempt: j.Attempt, Step: holder(j, k.who.Name)}
		} else {
			l, ok := o.header.(*wire.Launch)
			if !ok {
				return false
			}
			key = bare(l.Key)
			if !slices.ContainsFunc(snap.LiveSteps(key.Job), func(st *core.Step) bool {
				return stepKey(st) == key && !st.State.Final()
			}) {
				return true
			}
		}
		knows[key] = true
		return false
	})
}

// queueFirst adds orders before those that are queued.
func (k *conn) queueFirst(list []order) {
	if len(list) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(list)+len(k.orders) > maxQueue {
		k.disconnect(errors.New("the agent does not take its orders"))
		return
	}
	k.orders = append(list, k.orders...)
	k.wakeWriter()
}
