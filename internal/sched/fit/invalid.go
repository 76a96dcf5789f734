package fit

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// invalidPart says which part of a request cannot be read; "" if all can. Admission refuses such requests, so that only
// a record from elsewhere has one. Its job never starts: a restriction that is not understood is not lifted.
func invalidPart(s *core.Spec) string {
	for _, list := range [...][]core.Gres{
		s.Shape.Gres, s.Shape.Wide().GPUs, s.Shape.Wide().GPUsPerTask,
		s.Shape.Wide().GPUsPerSocket,
	} {
		for i := range list {
			if list[i].Name == "" || list[i].Count < 0 {
				return fmt.Sprintf("its generic resource %q:%d cannot be read", list[i].Name, list[i].Count)
			}
		}
	}
	x := s.Extra
	if x == nil {
		return ""
	}
	if err := x.Constraint.Fault(); err != nil {
		return fmt.Sprintf("its constraint cannot be read: %v", err)
	}
	if err := x.Prefer.Fault(); err != nil {
		return fmt.Sprintf("its preferred constraint cannot be read: %v", err)
	}
	if x.Switches.Fault() != nil {
		return fmt.Sprintf("its count of switches %q cannot be read", x.Switches.String())
	}
	if x.NodeList != "" {
		if n, err := hostlist.Count(x.NodeList, 1<<20); err != nil || n == 0 {
			return fmt.Sprintf("its list of nodes %q cannot be read", x.NodeList)
		}
	}
	if x.Exclude != "" {
		if _, err := hostlist.Count(x.Exclude, 1<<20); err != nil {
			return fmt.Sprintf("its list of nodes to avoid %q cannot be read", x.Exclude)
		}
	}
	if err := x.Licenses.Fault(); err != nil {
		return fmt.Sprintf("its licenses cannot be read: %v", err)
	}
	return ""
}
