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

// Offers show what a run would take of a node, the whole node, or what nobody has.
func TestOfferForms(t *testing.T) {
	t.Parallel()
	hardware := core.Hardware{CPUs: 8, Memory: 32 * core.GiB}
	at := &Places{Nodes: []*Place{
		{Node: &core.Node{Name: "shared", Roles: core.Compute, Blocks: 4, Hardware: hardware}, UsedCPUs: 2},
		{Node: &core.Node{Name: "plain", Roles: core.Compute, Hardware: hardware}, UsedCPUs: 3, UsedMem: 8 * core.GiB},
	}}
	c, err := config.Read([]byte("type: task\ncommands: [':']\nresources: {cpu: 1, memory: 1GB.., disk: 0..}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Spec{Configuration: *c}
	type shown struct {
		blocks, cpus int32
		memory       int64
	}
	for _, tc := range []struct {
		form          OfferForm
		shared, plain shown
	}{
		{OfferForm{}, shown{1, 2, 8 << 10}, shown{1, 8, 32 << 10}},
		{OfferForm{Full: true}, shown{4, 8, 32 << 10}, shown{1, 8, 32 << 10}},
		{OfferForm{Unallocated: true}, shown{3, 6, 24 << 10}, shown{1, 5, 24 << 10}},
	} {
		got := map[string]shown{}
		for _, f := range s.Offers(at, tc.form) {
			got[f.Node] = shown{f.Blocks, f.Instance.Resources.CPUs, f.Instance.Resources.MemoryMiB}
		}
		if got["shared"] != tc.shared || got["plain"] != tc.plain {
			t.Errorf("%+v: %+v", tc.form, got)
		}
	}
}
