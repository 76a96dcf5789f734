package api

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/server/api/call"
)

// A route that says nothing of scopes would be closed to every token, and one that is open must say nothing.
func TestEveryRouteStatesItsScope(t *testing.T) {
	t.Parallel()
	a := &API{}
	seen := map[string]bool{}
	for _, rt := range a.table() {
		r, ok := rights[rt.Key()]
		seen[rt.Key()] = true
		switch {
		case rt.Open && ok:
			t.Errorf("%s asks for no identity and for scope %q", rt.Key(), r.Scope)
		case !rt.Open && r.Scope == "":
			t.Errorf("%s states no scope: add it to rights.go", rt.Key())
		case rt.Right != r:
			t.Errorf("%s has right %v, the table says %v", rt.Key(), rt.Right, r)
		case r.Within == call.ByJob && !strings.Contains(rt.Path, "{id}"):
			t.Errorf("%s has no job in its path to compare with a token's project", rt.Key())
		}
	}
	for key := range rights {
		if !seen[key] {
			t.Errorf("there is no route %s", key)
		}
	}
}
