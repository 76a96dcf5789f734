package state

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

// TestLastAllowedQOSStays: a QOS that goes is taken out of lists that allow others too. One that is all a project may
// use stays: without it the project's list would be empty, which allows every QOS.
func TestLastAllowedQOSStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, Config{})
	for _, name := range []core.QOSName{"low", "high"} {
		w.must(&PutQOS{By: root, QOS: &core.QOS{Name: name}})
	}
	allow := func(list ...core.QOSName) {
		w.must(&PutProject{By: root, Project: &core.Project{Name: "lab", Assoc: core.Association{QOS: list}}})
	}
	allow("low")
	if _, err := w.do(&DropQOS{By: root, Name: "low", Unlist: true}); core.ReasonOf(err) != "qos_in_use" {
		t.Errorf("the only QOS of a project: %v", err)
	}
	allow("low", "high")
	w.must(&DropQOS{By: root, Name: "low", Unlist: true})
	if p, _ := w.st.rec.Project("lab"); len(p.Assoc.QOS) != 1 || p.Assoc.QOS[0] != "high" {
		t.Errorf("%q is left", p.Assoc.QOS)
	}
}
