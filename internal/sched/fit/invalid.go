package fit

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
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
	for _, c := range [...]struct{ what, text string }{{"constraint", x.Constraint}, {"preferred constraint", x.Prefer}} {
		if c.text == "" {
			continue
		}
		if _, err := grammar.ParseConstraint(c.text); err != nil {
			return fmt.Sprintf("its %s cannot be read: %v", c.what, err)
		}
	}
	if !validSwitches(x) {
		return fmt.Sprintf("its count of switches %q cannot be read", x.Switches)
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
	if x.Licenses != "" {
		if _, _, err := grammar.ParseLicenses(x.Licenses); err != nil {
			return fmt.Sprintf("its licences cannot be read: %v", err)
		}
	}
	return ""
}

// validSwitches reports whether a count of switches can be read, or there is none.
func validSwitches(x *core.Extra) bool {
	if x.Switches == "" {
		return true
	}
	_, _, err := grammar.ParseSwitches(x.Switches)
	return err == nil
}
