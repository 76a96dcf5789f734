package state

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

func init() { // after script_test.go's
	commands["ails"] = (*script).ails
}

// ails NODE [CHECK=TEXT…] [warn=yes] [stay=yes]: the node tells what is wrong with it; without any all is well. stay: it does not
// come back by itself.
func (s *script) ails(p []string, o args) error {
	in := &NodeHealth{Node: core.NodeName(p[0]), Return: o["stay"] == ""}
	for _, check := range slices.Sorted(maps.Keys(o)) {
		if check != "stay" && check != "warn" && check != "" {
			in.Faults = append(in.Faults, core.NodeFault{Check: check, Text: strings.ReplaceAll(o[check], "_", " "), Drain: o["warn"] == ""})
		}
	}
	_, err := s.w.do(in)
	return err
}
