package sched

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// splitFeatures reads a constraint that asks for several features at once: "fast&ib" or "fast,ib".
func splitFeatures(c string) []string {
	return strings.FieldsFunc(c, func(r rune) bool { return r == '&' || r == ',' })
}

// SimpleConstraint tells whether a constraint is a list of features that must all be there, the form placement knows.
func SimpleConstraint(c string) bool { return !strings.ContainsAny(c, "|[]*()! \t") }

func hasFeatures(n *core.Node, want []string) bool {
	for _, f := range want {
		if !slices.Contains(n.Features, f) {
			return false
		}
	}
	return true
}
