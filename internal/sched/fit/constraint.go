package fit

import (
	"slices"

	"bireme.dev/bireme/internal/core"
)

func hasFeatures(n *core.Node, want []string) bool {
	for _, f := range want {
		if !slices.Contains(n.Features, f) {
			return false
		}
	}
	return true
}
