package convert

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

// A run that names the instances it may be on is on no other.
func TestInstancesExcludeAllOthers(t *testing.T) {
	t.Parallel()
	at := &Places{}
	for _, name := range []core.NodeName{"n1", "n2", "n3"} {
		at.Nodes = append(at.Nodes, &Place{Node: &core.Node{Name: name}})
	}
	spec := &core.Spec{Shape: core.Shape{NodesMin: 1}, Extra: &core.Extra{}}
	if err := at.instances([]config.InstanceSelector{{Name: "n1"}, {Name: "n2"}}, spec); err != nil {
		t.Fatal(err)
	}
	if spec.Extra.Exclude != "n3" {
		t.Errorf("excluded: %q", spec.Extra.Exclude)
	}
}
