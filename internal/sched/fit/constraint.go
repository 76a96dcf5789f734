package fit

import (
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// splitFeatures reads a constraint that asks for several features at once: "fast&ib" or "fast,ib".
func splitFeatures(c string) []string {
	return strings.FieldsFunc(c, func(r rune) bool { return r == '&' || r == ',' })
}

// IsSimpleConstraint reports whether a constraint is a list of features that are all required.
func IsSimpleConstraint(c string) bool { return !strings.ContainsAny(c, "|[]*()! \t") }

func hasFeatures(n *core.Node, want []string) bool {
	for _, f := range want {
		if !slices.Contains(n.Features, f) {
			return false
		}
	}
	return true
}

// MeetsConstraint reports whether a node has what a constraint that was checked asks of each node.
func MeetsConstraint(constraint string, n *core.Node) bool {
	return constraint == "" || nodeMeets(parseConstraint(constraint), n)
}
