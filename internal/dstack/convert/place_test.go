package convert

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// A run that names the instances it may be on is on no other, those of other projects' fleets included.
func TestInstancesExcludeAllOthers(t *testing.T) {
	t.Parallel()
	at := &Places{Others: []core.NodeName{"theirs-0"}}
	for _, name := range []core.NodeName{"n1", "n2", "n3"} {
		at.Nodes = append(at.Nodes, &Place{Node: &core.Node{Name: name}})
	}
	spec := &core.Spec{Shape: core.Shape{NodesMin: 1}, Extra: &core.Extra{}}
	if err := at.instances([]config.InstanceSelector{{Name: "n1"}, {Name: "n2"}}, spec); err != nil {
		t.Fatal(err)
	}
	if spec.Extra.Exclude != "n3,theirs-0" {
		t.Errorf("excluded: %q", spec.Extra.Exclude)
	}
}
