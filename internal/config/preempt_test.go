package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func TestPreemption(t *testing.T) {
	t.Parallel()
	c, err := Parse("site.yml", []byte(`
partitions:
  - {name: main, nodes: ALL, default: yes}
  - {name: scrap, nodes: ALL, preempt_mode: CANCEL, grace: 30s}
preemption: {type: qos, mode: "requeue,within", grace: 2m, exempt_time: 10m, order: youngest}
`))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	want := core.Preemption{Type: core.PreemptByQOS, Mode: "requeue,within", Grace: 120, Exempt: 600, Order: core.Youngest}
	if d := cmp.Diff(want, c.Preemption.Core()); d != "" {
		t.Errorf("preemption (-want +got):\n%s", d)
	}
	if p := c.CorePartitions()[1]; p.PreemptMode != core.PreemptCancel || p.Grace != 30 {
		t.Errorf("partition scrap: %q, grace %d", p.PreemptMode, p.Grace)
	}
	if off := Default().Preemption.Core(); off.Type != core.PreemptNobody {
		t.Errorf("by default: %+v", off)
	}
	for text, says := range map[string]string{
		"preemption: {type: maybe}":            "preemption.type",
		"preemption: {mode: 'requeue,cancel'}": "preemption.mode",
		"gpu: {health: maybe}":                 "gpu.health",
		"gpu: {sample: -1s}":                   "gpu.sample",
		"preemption: {order: oldest}":          "preemption.order",
		"preemption: {grace: 1500ms}":          "preemption.grace",
		"partitions: [{name: main, nodes: ALL, default: yes, preempt_mode: gently}]": "partitions[0].preempt_mode",
	} {
		_, err := Parse("site.yml", []byte(text))
		var e *core.Error
		if !errors.As(err, &e) || len(e.Faults) != 1 || !strings.Contains(e.Faults[0].Path, says) {
			t.Errorf("%s: %+v", text, e)
		}
	}
}
