package conf

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core/hostlist"
)

// downNodes lays the DownNodes lines over the nodes: those they name begin in that state, for that reason. A NodeName
// line that has others too is split.
func (v *converter) downNodes() {
	for i := range v.conf.Down {
		r := &v.conf.Down[i]
		names, err := hostlist.Expand(r.Name, maxNames)
		if err != nil {
			v.fault(r.Where, "DownNodes=%s is no list of names", r.Name)
			continue
		}
		state := "down"
		if text, ok := r.Get("State"); ok {
			state = strings.ToLower(text)
		}
		switch state {
		case "down", "drain", "fail":
		case "failing":
			state = "fail"
		default:
			v.fault(r.Where, "State=%s: expected DOWN, DRAIN or FAIL", state)
			continue
		}
		reason, _ := r.Get("Reason")
		for _, name := range names {
			if !v.declared[name] {
				v.fault(r.Where, "DownNodes=%s: no NodeName line has it", name)
			}
		}
		v.cfg.Nodes = mark(v.cfg.Nodes, names, state, reason)
	}
}

// mark gives some nodes a state and a reason.
func mark(nodes []config.Node, names []string, state, reason string) []config.Node {
	out := make([]config.Node, 0, len(nodes)+1)
	for _, n := range nodes {
		have, err := hostlist.Expand(n.Names, maxNames)
		if err != nil { // it was made of names
			out = append(out, n)
			continue
		}
		isMarked := func(name string) bool { return slices.Contains(names, name) }
		var marked []string
		for _, name := range have {
			if isMarked(name) {
				marked = append(marked, name)
			}
		}
		if len(marked) == 0 {
			out = append(out, n)
			continue
		}
		if len(marked) < len(have) {
			rest := n
			rest.Names = hostlist.Fold(slices.DeleteFunc(have, isMarked))
			out = append(out, rest)
		}
		n.Names, n.State, n.Reason = hostlist.Fold(marked), state, reason
		out = append(out, n)
	}
	return out
}
