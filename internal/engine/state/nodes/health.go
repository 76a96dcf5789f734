package nodes

import (
	"cmp"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// drainForFaults drains a node for what ails it, and takes that drain back when nothing does. A drain or down that is
// somebody else's, or has another reason, stays as it is.
func (ed *Editor) drainForFaults(n, next *core.Node, back bool) {
	was, is := faultSummary(n), faultSummary(next)
	ours := n.ReasonBy == SystemUser && was != "" && n.Reason == was
	switch {
	case is != "" && (ours || !n.Flags.Any(core.NodeDrain|core.NodeDown)):
		next.Flags |= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = is, SystemUser, ed.rec.Now()
	case is == "" && ours && back:
		next.Flags &^= core.NodeDrain
		next.Reason, next.ReasonBy, next.ReasonAt = "", "", 0
	}
}

// faultSummary is why a node is not to be used, in one line; empty: it is well enough.
func faultSummary(n *core.Node) string {
	var out []string
	if allUnitsSick(&n.Hardware) {
		out = append(out, core.SickText(n.Hardware.Sick))
	}
	if len(n.Faults) > 0 {
		out = append(out, core.FaultText(n.Faults))
	}
	return strings.Join(out, "; ")
}

// sickUnits is the new list, in order; what was sick stays so unless it may come back.
func sickUnits(sick []core.SickUnit, back bool, n *core.Node) []core.SickUnit {
	sick = slices.Clone(sick)
	for _, u := range n.Hardware.Sick {
		if !back && !slices.ContainsFunc(sick,
			func(o core.SickUnit) bool { return o.Name == u.Name && o.Index == u.Index }) {
			sick = append(sick, u)
		}
	}
	slices.SortFunc(sick, func(a, b core.SickUnit) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index))
	})
	return slices.CompactFunc(sick, func(a, b core.SickUnit) bool { return a.Name == b.Name && a.Index == b.Index })
}

// allUnitsSick reports whether all units of some resource are sick.
func allUnitsSick(h *core.Hardware) bool {
	left := map[string]int{}
	for _, k := range h.Kinds() {
		left[k.Name] += len(k.Index)
	}
	for _, u := range h.Sick {
		if n, has := left[u.Name]; has && n == 0 {
			return true
		}
	}
	return false
}

// SetFaults takes what is wrong with a node as a whole. What drains does so unless somebody else has. back lets a node
// that was drained so come back when nothing of it is left; otherwise an administrator says so.
func (ed *Editor) SetFaults(name core.NodeName, told []core.NodeFault, back bool) {
	n, ok := ed.rec.Node(name)
	if !ok {
		return
	}
	faults := slices.DeleteFunc(slices.Clone(told), func(f core.NodeFault) bool { return !f.Drain })
	for _, f := range n.Faults {
		// Of one check the last word holds: a program may say something else each time.
		if !back && !slices.ContainsFunc(told, func(o core.NodeFault) bool { return o.Check == f.Check && o.Drain }) {
			faults = append(faults, f)
		}
	}
	if slices.Equal(faults, n.Faults) {
		return
	}
	edit := ed.Edit(n)
	edit.Node.Faults = faults
	ed.drainForFaults(n, edit.Node, back)
	edit.Commit(SystemUser)
}

// SetSickUnits takes which units of a node are sick: they are given to nobody, while a job that has one keeps it. A
// node whose units of a name all are is drained. back lets units, and a node drained so, come back when they are well.
func (ed *Editor) SetSickUnits(name core.NodeName, told []core.SickUnit, back bool) {
	n, ok := ed.rec.Node(name)
	if !ok {
		return
	}
	sick := sickUnits(told, back, n)
	if slices.Equal(sick, n.Hardware.Sick) {
		return
	}
	edit := ed.Edit(n)
	edit.Node.Hardware.Sick = sick
	ed.drainForFaults(n, edit.Node, back)
	edit.Commit(SystemUser)
}
