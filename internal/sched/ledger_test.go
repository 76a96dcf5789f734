package sched

import (
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/fit"
	"bireme.dev/bireme/internal/sched/ledger"
)

func part(node core.NodeName, cores []int32, mem core.Bytes, units ...int32) *core.NodeAlloc {
	na := &core.NodeAlloc{Node: node, CPUs: int32(len(cores)), Cores: cores, Mem: mem, Tasks: 1}
	if len(units) > 0 {
		na.Gres = []core.GresAlloc{{Name: "gpu", Type: "a", Units: units}}
	}
	return na
}

func TestLedgerGivesNothingTwice(t *testing.T) {
	t.Parallel()
	n := coretest.Node("n1").CPUs(4).Mem(8*core.GiB).Gres("gpu", "a", 2).Build()
	held := part("n1", []int32{0, 1}, 4*core.GiB, 0)
	for name, tc := range map[string]struct {
		ask       *core.NodeAlloc
		exclusive bool
		want      bool
	}{
		"the rest":       {part("n1", []int32{2, 3}, 4*core.GiB, 1), false, true},
		"a core that is": {part("n1", []int32{1, 2}, 0), false, false},
		"more cores":     {part("n1", []int32{2, 3, 4}, 0), false, false},
		"more memory":    {part("n1", []int32{2}, 5*core.GiB), false, false},
		"a unit that is": {part("n1", []int32{2}, 0, 0), false, false},
		"a unit beyond":  {part("n1", []int32{2}, 0, 2), false, false},
		"the whole node": {part("n1", []int32{2}, 0), true, false},
		"a kind it has not": {
			&core.NodeAlloc{Node: "n1", Gres: []core.GresAlloc{{Name: "fpga", Units: []int32{0}}}}, false,
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledger.New()
			l.SetNode(n)
			if !l.Allocate(held, alloc.Terms{}) {
				t.Fatal("an empty node does not take the first")
			}
			if got := l.Allocate(tc.ask, alloc.Terms{Exclusive: tc.exclusive}); got != tc.want {
				t.Fatalf("Take = %t, want %t", got, tc.want)
			}
			if tc.want {
				l.Release(tc.ask, alloc.Terms{Exclusive: tc.exclusive})
			}
			l.Release(held, alloc.Terms{})
			if !l.Allocate(part("n1", []int32{0, 1, 2, 3}, 8*core.GiB, 0, 1), alloc.Terms{Exclusive: true}) {
				t.Fatal("after all came back the node is not whole")
			}
		})
	}
}

// TestLedgerOfANodeThatShrinks: what is held beyond the hardware comes back to nobody.
func TestLedgerOfANodeThatShrinks(t *testing.T) {
	t.Parallel()
	l := ledger.New()
	big := coretest.Node("n1").CPUs(4).Mem(8*core.GiB).Gres("gpu", "a", 2)
	if !l.SetNode(big.Build()) {
		t.Fatal("a new node is not fresh")
	}
	held := part("n1", []int32{2, 3}, 6*core.GiB, 1)
	l.Allocate(held, alloc.Terms{})
	small := coretest.Node("n1").CPUs(2).Mem(4*core.GiB).Gres("gpu", "a", 1)
	if !l.SetNode(small.Build()) {
		t.Fatal("a node with other hardware is not fresh")
	}
	l.ForceAllocate(held, alloc.Terms{})
	if l.Allocate(part("n1", []int32{0}, 0), alloc.Terms{}) || l.Allocate(part("n1", nil, 0, 0), alloc.Terms{}) {
		t.Fatal("the node gives what it owes")
	}
	l.Release(held, alloc.Terms{})
	if l.Allocate(part("n1", []int32{2}, 0), alloc.Terms{}) || l.Allocate(part("n1", nil, 0, 1), alloc.Terms{}) {
		t.Fatal("the node gives what it has not any more")
	}
	if l.SetNode(small.Weight(7).Build()) {
		t.Fatal("a node that only weighs more is fresh")
	}
	if !l.Allocate(part("n1", []int32{0, 1}, 4*core.GiB, 0), alloc.Terms{}) {
		t.Fatal("the node does not give what it has")
	}
}

func TestLedgerCountsAKindInTwoParts(t *testing.T) {
	t.Parallel()
	l := ledger.New()
	l.SetNode(coretest.Node("n1").Gres("gpu", "a", 1).Gres("gpu", "a", 2).Build())
	if !l.Allocate(part("n1", nil, 0, 0, 1, 2), alloc.Terms{}) || l.Allocate(part("n1", nil, 0, 0), alloc.Terms{}) {
		t.Fatal("one and two units are not three, each given once")
	}
}

// TestNodesWithoutTheDisk: temporary disk is a filter, and part of the key that verdicts are kept by.
func TestNodesWithoutTheDisk(t *testing.T) {
	t.Parallel()
	l := ledger.New()
	n := coretest.Node("n1").CPUs(4).Mem(8 * core.GiB).Build()
	n.Hardware.TmpDisk = 10 * core.GiB
	l.SetNode(n)
	none := func(string) map[core.NodeName]bool { return nil }
	small, large := coretest.Job().Spec(), coretest.Job().Spec()
	small.Extra, large.Extra = &core.Extra{TmpDisk: 10 * core.GiB}, &core.Extra{TmpDisk: 11 * core.GiB}
	if fit.KeyOf(small) == fit.KeyOf(large) {
		t.Error("requests for different disks have one key")
	}
	if f := fit.CheckSatisfiable(l, small, &core.Partition{}, &fit.NodeSet{}, none); f != nil {
		t.Errorf("what is there is refused: %+v", f)
	}
	if f := fit.CheckSatisfiable(l, large, &core.Partition{}, &fit.NodeSet{}, none); f == nil || f.OnlyCPUs {
		t.Errorf("more than there is: %+v", f)
	}
}
