package state

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

func init() { // after script_test.go's
	commands["sick"] = (*script).sick
}

// sick NODE [gpu=0,3] [why=TEXT] [stay=yes]: the node tells which of its GPUs are sick; without gpu all are well. stay:
// they do not come back by themselves.
func (s *script) sick(p []string, o args) error {
	in := &UnitHealth{Node: core.NodeName(p[0]), Return: o["stay"] == ""}
	if v := o["gpu"]; v != "" {
		for n := range strings.SplitSeq(v, ",") {
			in.Sick = append(in.Sick, core.SickUnit{Name: "gpu", Index: int32(s.num(n)), Reason: o["why"]})
		}
	}
	_, err := s.w.do(in)
	return err
}
