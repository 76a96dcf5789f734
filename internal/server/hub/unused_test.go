package hub

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// TestLowUse: one GPU that is used too little all the time is enough; one that is used in between begins again.
func TestLowUse(t *testing.T) {
	t.Parallel()
	j := &core.Job{ID: 7, Attempt: 1, State: core.Running, Spec: &core.Spec{Extra: &core.Extra{
		Rules: &core.RunRules{Utilization: &core.MinUtilization{Percent: 50, Window: 600}},
	}}}
	var l lowUse
	at := core.Time(1e15)
	sample := func(minute int, a, b float64) bool {
		x := &core.Sample{
			At: at.Add(time.Duration(minute) * time.Minute), Node: "n1",
			GPUs: []core.UnitUse{{Index: 0, Util: a}, {Index: 3, Util: b}},
		}
		r := l.note(j, x)
		if r != nil && (r.Job != 7 || r.Unit != 3 || r.Node != "n1") {
			t.Errorf("%+v", r)
		}
		return r != nil
	}
	for _, s := range []struct {
		minute int
		a, b   float64
		want   bool
	}{
		{0, 90, 10, false},
		{5, 40, 10, false},
		{9, 90, 60, false},
		{12, 90, 49, false},
		{21, 90, 0, false},
		{22, 90, 0, true},
		{23, 50, 50, false},
		{33, 50, 10, false},
	} {
		if got := sample(s.minute, s.a, s.b); got != s.want {
			t.Errorf("after %d minutes: %v", s.minute, got)
		}
	}
	j.Attempt = 2
	if sample(60, 0, 0) {
		t.Error("another attempt begins anew")
	}
	j.Spec.Extra.Rules = nil
	if sample(90, 0, 0) {
		t.Error("a job without the rule was reported")
	}
}
