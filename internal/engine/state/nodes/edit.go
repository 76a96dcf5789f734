// Package nodes has the life of nodes: what administrators ask of them, what time brings (power, restarts, timeouts),
// what is wrong with them, how they join and leave, and what becomes of the jobs on them.
package nodes

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/cluster"
	"bireme.dev/bireme/internal/engine/state/conf"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/live"
)

// Editor begins changes of nodes, and knows what time and an empty node bring.
type Editor struct {
	rec     *live.Records
	cfg     *conf.Config
	cluster *cluster.Cluster
	jobs    *jobs.Editor
	follow  Followers

	timers      timers
	idleActions map[core.NodeName]struct{} // nodes with which something is to be done when they are empty
}

// Followers bring all that depends on nodes up to date.
type Followers struct {
	Changed func(old, n *core.Node) // stores a record; old is nil for a new node
	Deleted func(n *core.Node)      // deletes a record
}

// NewEditor makes the editor of the nodes of rec.
func NewEditor(rec *live.Records, cfg *conf.Config, cl *cluster.Cluster, ed *jobs.Editor, f Followers) *Editor {
	return &Editor{
		rec: rec, cfg: cfg, cluster: cl, jobs: ed, follow: f, idleActions: map[core.NodeName]struct{}{},
		timers: timers{at: map[core.NodeName]core.Time{}},
	}
}

// NodeChanged notes when time changes a node, and what is to be done when it is empty.
func (ed *Editor) NodeChanged(n *core.Node) {
	ed.trackIdleAction(n)
	ed.setTimer(n)
}

// Load notes of a loaded node what is to be done when it is empty. ResetTimers follows when all are loaded.
func (ed *Editor) Load(n *core.Node) { ed.trackIdleAction(n) }

// Edit is a change of one node's record: a copy that its methods change. Every edit ends with one of the commit
// methods; nothing else stores a node.
type Edit struct {
	Node *core.Node // the copy that is stored
	ed   *Editor
}

// Edit begins a change of a node.
func (ed *Editor) Edit(n *core.Node) Edit {
	c := *n
	return Edit{&c, ed}
}

// EditRecord begins a change with a record that nobody else has.
func (ed *Editor) EditRecord(n *core.Node) Edit { return Edit{n, ed} }

// commit stores a change and emits its event; by is empty for one that nobody asked for.
func (e *Edit) Commit(by core.UserName) { e.CommitAs(core.NodeChanged, by) }

// CommitAs is commit with an event of a kind: NodeJoined for a new node.
func (e *Edit) CommitAs(kind core.EventKind, by core.UserName) {
	e.CommitSilently()
	e.ed.rec.Event(kind, core.Event{Node: e.Node.Name, By: by, Data: nodeData(e.Node)})
}

// commitSilently stores a change that nobody watches for: its key, or since when it is idle.
func (e *Edit) CommitSilently() {
	old, _ := e.ed.rec.Node(e.Node.Name)
	if e.ed.cfg.Power.SuspendTime > 0 && e.Node.Flags == 0 && (old == nil || old.Flags != 0) {
		e.Node.LastBusy = e.ed.rec.Now() // it could not be used before
	}
	e.ed.follow.Changed(old, e.Node)
}

func nodeData(n *core.Node) []byte {
	b := append(make([]byte, 0, 64), `{"flags":`...)
	b = append(b, fmt.Sprint(uint16(n.Flags))...)
	b = append(b, `,"state":`...)
	b = jsontext.AppendString(b, n.Flags.String())
	if n.Reason != "" {
		b = append(b, `,"reason":`...)
		b = jsontext.AppendString(b, n.Reason)
	}
	if text := core.FaultText(n.Faults); text != "" && text != n.Reason {
		b = append(b, `,"faults":`...)
		b = jsontext.AppendString(b, text)
	}
	return append(b, '}')
}
