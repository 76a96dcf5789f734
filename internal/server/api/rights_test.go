package api

import (
	"strings"
	"testing"
)

// A route that says nothing of scopes would be closed to every token, and one that is open must say nothing.
func TestEveryRouteStatesItsScope(t *testing.T) {
	t.Parallel()
	a := &API{}
	seen := map[string]bool{}
	for _, rt := range a.table() {
		r, ok := rights[rt.key()]
		seen[rt.key()] = true
		switch {
		case rt.open && ok:
			t.Errorf("%s asks for no identity and for scope %q", rt.key(), r.scope)
		case !rt.open && r.scope == "":
			t.Errorf("%s states no scope: add it to rights.go", rt.key())
		case rt.right != r:
			t.Errorf("%s has right %v, the table says %v", rt.key(), rt.right, r)
		case r.within == byJob && !strings.Contains(rt.path, "{id}"):
			t.Errorf("%s has no job in its path to compare with a token's project", rt.key())
		}
	}
	for key := range rights {
		if !seen[key] {
			t.Errorf("there is no route %s", key)
		}
	}
}
