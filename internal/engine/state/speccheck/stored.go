package speccheck

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Stored tells what is wrong with a record; "" if nothing is.
func Stored(j *core.Job) string {
	switch {
	case j.Spec == nil:
		return "it says nothing of what was asked for"
	case j.State > core.OutOfMemory:
		return fmt.Sprintf("there is no state %d", j.State)
	case j.Attempt < 0 && j.Message != "":
		return j.Message
	case j.Attempt < 0 || j.Steps < 0:
		return fmt.Sprintf("%d attempts, %d steps", j.Attempt, j.Steps)
	case (j.State == core.Running || j.State == core.Suspended) && j.Alloc == nil:
		return "it runs, and has no nodes"
	case j.Array != nil && (j.Array.Base <= 0 || j.Array.Count < 0 || !j.IsArray() && j.Array.Task < 0):
		return fmt.Sprintf("task %d of %d of array %d", j.Array.Task, j.Array.Count, j.Array.Base)
	}
	for _, check := range []func(*core.Spec) error{Shape, Ranges} {
		if err := check(j.Spec); err != nil {
			return err.Error()
		}
	}
	x := j.Spec.More()
	if h := x.Het; h != nil &&
		(h.Count < 1 || h.Count > MaxComponents || h.Offset < 0 || h.Offset >= h.Count ||
			h.Lead+core.JobID(h.Offset) != j.ID) {
		return fmt.Sprintf("job %d is no component %d of %d of job %d", j.ID, h.Offset, h.Count, h.Lead)
	}
	if x.TimeAsked < 0 || x.TimeAsked > MaxSeconds && x.TimeAsked != core.Forever {
		return fmt.Sprintf("a time limit of %d seconds", x.TimeAsked)
	}
	if j.Needs != nil {
		for i := range j.Needs.Left {
			switch n := &j.Needs.Left[i]; n.Kind {
			case core.NeedAfter, core.NeedAfterAny, core.NeedAfterOK, core.NeedAfterNotOK, core.NeedAfterCorr,
				core.NeedSingleton:
				if n.Delay < 0 || n.Delay > MaxSeconds {
					return fmt.Sprintf("a dependency with a delay of %d seconds", n.Delay)
				}
			default:
				return fmt.Sprintf("there is no dependency %q", n.Kind)
			}
		}
	}
	return checkAlloc(j.Alloc)
}

func checkAlloc(al *core.Alloc) string {
	if al == nil {
		return ""
	}
	for i := range al.Nodes {
		na := &al.Nodes[i]
		if na.CPUs < 0 || na.Mem < 0 || na.Mem > maxMemory || na.Tasks < 0 || slices.ContainsFunc(na.Cores, isBadIndex) ||
			slices.ContainsFunc(na.Gres, func(g core.GresAlloc) bool { return slices.ContainsFunc(g.Units, isBadIndex) }) {
			return fmt.Sprintf("%d CPUs %v and %d bytes of memory on node %s", na.CPUs, na.Cores, na.Mem, na.Node)
		}
	}
	return ""
}

// isBadIndex reports whether there can be no CPU or unit of a number.
func isBadIndex(n int32) bool { return n < 0 || n > 1<<16 }

// PlaceholderSpec is a spec that says whose job it is and asks for nothing.
func PlaceholderSpec(spec *core.Spec) *core.Spec {
	out := &core.Spec{Name: "unreadable", Shape: core.Shape{Tasks: 1, CPUsPerTask: 1}, TimeLimit: 60}
	if spec == nil {
		return out
	}
	out.Name, out.User, out.UID, out.GID, out.Project, out.Partition, out.QOS = spec.Name, spec.User, spec.UID, spec.GID,
		spec.Project, spec.Partition, spec.QOS
	out.Kind, out.Runtime, out.Run, out.Script, out.Env, out.Args = min(spec.Kind, core.Interactive), spec.Runtime,
		spec.Run, spec.Script, spec.Env, spec.Args
	out.IO, out.From, out.Array = spec.IO, spec.From, spec.Array
	if l := spec.TimeLimit; l > 0 && (l <= MaxSeconds || l == core.Forever) {
		out.TimeLimit = l
	}
	return out
}

// PlaceholderAlloc is what of an allocation can be counted.
func PlaceholderAlloc(al *core.Alloc) *core.Alloc {
	if al == nil || checkAlloc(al) == "" {
		return al
	}
	out := &core.Alloc{Partition: al.Partition}
	for i := range al.Nodes {
		na := core.NodeAlloc{
			Node: al.Nodes[i].Node, CPUs: max(0, al.Nodes[i].CPUs), Tasks: max(0, al.Nodes[i].Tasks),
			Done: al.Nodes[i].Done,
		}
		if m := al.Nodes[i].Mem; m >= 0 && m <= maxMemory {
			na.Mem = m
		}
		out.Nodes = append(out.Nodes, na)
	}
	return out
}
