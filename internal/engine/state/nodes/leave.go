package nodes

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// FailJobsOn ends the attempts on a node that cannot go on with them. Their processes may still run: the node is asked
// to be clean of them before anything starts again.
func (ed *Editor) FailJobsOn(node core.NodeName, message string) {
	for _, id := range ed.cluster.JobIDsOn(node) {
		j, _ := ed.rec.Job(id)
		edit := ed.jobs.Edit(j)
		edit.FailOnNode(node, message)
		edit.CommitIfChanged(j)
	}
}

// LoseJobsOn ends the attempts that ran on a node that is known to have lost them.
func (ed *Editor) LoseJobsOn(node core.NodeName, message string, only ...core.JobID) {
	for _, id := range ed.cluster.JobIDsOn(node) {
		if only != nil && !slices.Contains(only, id) {
			continue
		}
		j, _ := ed.rec.Job(id)
		edit := ed.jobs.Edit(j)
		next := edit.Job
		if edit.FailOnNode(node, message); !jobs.IsOver(next) {
			edit.Commit()
			continue
		}
		ed.jobs.FailStepsOn(next, node, message)
		edit.NodeClean(node)
	}
}

func DownMessage(n *core.Node) string {
	return fmt.Sprintf("node %s was set down: %s", n.Name, n.Reason)
}

// DescribeJobsOn names the first jobs on a node.
func (ed *Editor) DescribeJobsOn(name core.NodeName) string {
	var ids []string
	all := ed.cluster.JobIDsOn(name)
	for _, id := range all[:min(5, len(all))] {
		ids = append(ids, fmt.Sprint(id))
	}
	text := "job " + strings.Join(ids, ", ") + " runs"
	if len(all) > 1 {
		text = "jobs " + strings.Join(ids, ", ") + " run"
	}
	if more := len(all) - len(ids); more > 0 {
		text = fmt.Sprintf("jobs %s and %d more run", strings.Join(ids, ", "), more)
	}
	return text
}

// RemoveWhenEmpty removes a node that has no jobs, and marks one that has: runIdleActions removes it when it is
// empty.
func (ed *Editor) RemoveWhenEmpty(n *core.Node, by core.UserName, now, gone bool) {
	if len(ed.cluster.OnNode(n.Name)) == 0 || gone {
		ed.Delete(n.Name, "")
		return
	}
	edit := ed.Edit(n)
	next := edit.Node
	next.Leaving = true
	next.Flags |= core.NodeDrain
	if now {
		next.Flags = next.Flags&^core.NodeDrain | core.NodeDown
	}
	next.Reason, next.ReasonBy, next.ReasonAt = "it is being removed", by, ed.rec.Now()
	edit.Commit(by)
	switch message := fmt.Sprintf("node %s is removed", n.Name); {
	case !now:
	case next.Flags.Any(core.NodeSilent | core.NodeUnknown):
		ed.LoseJobsOn(n.Name, message)
	default: // the agent ends them and says so: a job must not start again beside itself
		ed.FailJobsOn(n.Name, message)
	}
}

// Delete deletes a node that holds nothing any more, or that cannot be reached; why is set for the latter.
func (ed *Editor) Delete(name core.NodeName, why string) {
	n, ok := ed.rec.Node(name)
	if !ok {
		return
	}
	ed.LoseJobsOn(name, fmt.Sprintf("node %s was removed", name))
	delete(ed.idleActions, name)
	ed.follow.Deleted(n)
	data := []byte(`{"gone":true`)
	if why != "" {
		data = jsontext.AppendString(append(data, `,"reason":`...), why)
	}
	ed.rec.Event(core.NodeChanged, core.Event{Node: name, Data: append(data, '}')})
}
