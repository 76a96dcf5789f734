package speccheck

import (
	"bireme.dev/bireme/internal/core"
)

// Step refuses a step that could not be: whoever laid it out, it has nodes, each once and with tasks, and a short
// name.
func Step(st *core.Step) error {
	if len(st.Name) > maxName {
		return TooLong("step name", len(st.Name), maxName)
	}
	if len(st.Nodes) == 0 || len(st.Nodes) != len(st.Tasks) {
		return core.Errorf(core.Invalid, "the step has %d nodes but tasks for %d", len(st.Nodes),
			len(st.Tasks)).Because("invalid_node")
	}
	seen := make(map[core.NodeName]bool, len(st.Nodes))
	for i, n := range st.Nodes {
		if seen[n] || st.Tasks[i] < 0 {
			return core.Errorf(core.Invalid, "node %s: a step must list each node once, with at least one task", n).
				Because("invalid_node")
		}
		seen[n] = true
	}
	return nil
}
