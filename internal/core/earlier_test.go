package core

import "testing"

// An attempt that went back is kept as it ended; the record it was made from stays as it was, and of many the last are
// kept.
func TestRemember(t *testing.T) {
	t.Parallel()
	al := &Alloc{Nodes: []NodeAlloc{{Node: "n1", CPUs: 2}}}
	first := Job{ID: 7, State: Running, Attempt: 1, Start: 10, End: 20, Alloc: al, Flags: Requeueing}
	second := first
	second.Remember()
	second.Attempt, second.Start, second.End, second.Reason = 2, 30, 40, ReasonNodeDown
	third := second
	third.Remember()
	if first.Earlier != nil || len(second.Earlier.Attempts) != 1 || len(third.Earlier.Attempts) != 2 {
		t.Fatalf("%v %v %v: a record was changed that others read", first.Earlier, second.Earlier, third.Earlier)
	}
	old := third.As(&third.Earlier.Attempts[0])
	if old.State != Running || !old.Flags.Has(Requeueing) || old.Attempt != 1 || old.Start != 10 || old.End != 20 ||
		old.Alloc != al || old.ID != 7 {
		t.Errorf("the first attempt is %+v", old)
	}
	if a := third.Earlier.Attempts[1]; a.State != NodeFail || a.Attempt != 2 {
		t.Errorf("the second attempt is %+v, want one that ended NODE_FAIL", a)
	}
	for i := int32(3); i < 100; i++ {
		third.Attempt = i
		third.Remember()
	}
	if a := third.Earlier.Attempts; len(a) != MaxEarlier || a[MaxEarlier-1].Attempt != 99 ||
		a[0].Attempt != 100-MaxEarlier {
		t.Errorf("%d are kept, from %d to %d", len(a), a[0].Attempt, a[len(a)-1].Attempt)
	}
}
