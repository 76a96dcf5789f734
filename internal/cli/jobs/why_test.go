package jobs

import (
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func TestOutagesWithOneReasonAreOneLine(t *testing.T) {
	t.Parallel()
	var nodes []client.Node
	for i := range 20 {
		n := client.Node{Node: core.Node{
			Name: core.NodeName(fmt.Sprintf("gpu%02d", i+1)), Reason: "cooling",
			Roles: core.Compute, Flags: core.NodeDrain,
		}}
		nodes = append(nodes, n)
	}
	var b strings.Builder
	outOfUse(&b, nodes, nil)
	if got, want := b.String(), "  out of use:     gpu[01-20]: cooling\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSmallFactorsAreZero(t *testing.T) {
	t.Parallel()
	p := &client.Priority{Now: 1, Factors: []client.Factor{{Name: "age", Value: 1.65e-08, Weight: 1000}}}
	if got := priorityText(p); !strings.Contains(got, "age 0×1000") {
		t.Errorf("%q", got)
	}
}
