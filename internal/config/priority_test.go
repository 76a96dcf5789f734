package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/policy"
)

func TestPriority(t *testing.T) {
	t.Parallel()
	text := `
partitions:
  - {name: main, nodes: ALL, default: yes, billing_weights: "CPU=1,Mem=0.25G"}
priority:
  type: multifactor
  weights: {age: 1000, fairshare: 100_000, job_size: 10, partition: 5, tres: "cpu=7,gres/gpu=9"}
  max_age: 1d
  favor_small: yes
  flags: [MAX_TRES, no_fair_tree]
  decay_half_life: 0
`
	c, err := Parse("site.yml", []byte(text))
	if err != nil {
		t.Fatalf("%+v", err)
	}
	got, ok := c.Priority.Policy()
	want := policy.Config{
		Weights: policy.Weights{
			Age: 1000, FairShare: 100_000, JobSize: 10, Partition: 5,
			TRES: []policy.Weight{{Name: "cpu", Per: 7}, {Name: "gres/gpu", Per: 9}},
		},
		MaxAge: 86400, FavorSmall: true, Flags: policy.MaxTRES | policy.NoFairTree,
	}
	if d := cmp.Diff(want, got); d != "" || !ok {
		t.Errorf("policy (-want +got), %v:\n%s", ok, d)
	}
	if w := c.Billing()["main"]; len(w) != 2 || w[1] != (policy.Weight{Name: "mem", Per: .25 / 1024}) {
		t.Errorf("billing: %v", w)
	}
	var b strings.Builder
	if err := c.Show(&b); err != nil {
		t.Fatal(err)
	}
	again, err := Parse("again.yml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%+v\n%s", err, b.String())
	}
	if d := cmp.Diff(c, again, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("show changed the settings (-was +is):\n%s", d)
	}
	if _, ok := Default().Priority.Policy(); ok {
		t.Error("without a word about it, priorities are not basic")
	}
}

func TestPriorityFaults(t *testing.T) {
	t.Parallel()
	_, err := Parse("site.yml", []byte(`partitions:
  - {name: main, nodes: ALL, default: yes, billing_weights: "cpus=1"}
priority:
  type: fair
  weights:
    age: -1
    job_size: 5_000_000_000
    tres: cpu
    fairshares: 3
  flags: [MAXTRES]
  calc_period: 0
  max_age: 200ms
  dampening: 0
`))
	var e *core.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, f := range e.Faults {
		got = append(got, f.Path)
	}
	want := []string{
		"line 9: priority.weights.fairshares", "line 2: partitions[0].billing_weights", "line 4: priority.type",
		"line 6: priority.weights.age",
		"line 7: priority.weights.job_size", "line 8: priority.weights.tres", "line 10: priority.flags",
		"line 12: priority.max_age",
		"line 11: priority.calc_period", "line 13: priority.dampening",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("faults (-want +got):\n%s\n%+v", d, e.Faults)
	}
}
