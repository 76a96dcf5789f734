package dstack

import (
	"strings"
	"testing"

	"bireme.dev/bireme/internal/client"
)

// TestPlace: which fleets a run may be on.
func TestPlace(t *testing.T) {
	t.Parallel()
	fleets := []client.Fleet{
		{Name: "any", Placement: "any"},
		{Name: "big", Placement: "cluster"},
		{Name: "old", Placement: "cluster"},
	}
	for name, tc := range map[string]struct {
		text   string
		fleets []client.Fleet
		want   string // the constraint, or what the error says after "!"
	}{
		"no fleets":      {"nodes: 2", nil, ""},
		"one node":       {"nodes: 1", fleets, ""},
		"several":        {"nodes: 2", fleets, "[big|old]"},
		"several of one": {"nodes: 2\nfleets: [big]", fleets, "big"},
		"one of some":    {"fleets: [any, {name: old}]", fleets, "any|old"},
		"several where none may": {
			"nodes: 2\nfleets: [any]", fleets,
			"!needs a fleet with `placement: cluster`, and none of any is",
		},
		"a fleet that is not here": {"fleets: [bigg]", fleets, "!there is no fleet \"bigg\"; did you mean big?"},
		"a fleet and none here":    {"fleets: [big]", nil, "!there is no fleet \"big\""},
		"another project's":        {"fleets: [p/big]", fleets, "!fleets of other projects"},
		"a typo":                   {"fleets: [{nam: big}]", fleets, "!fleets[0].nam: unknown key; did you mean name?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			task, err := Parse("t.yml", []byte("type: task\nname: x1\ncommands: [a]\n"+tc.text+"\n"))
			if err == nil {
				var sub *client.Submit
				if sub, err = task.Submit(Options{}); err == nil && task.Placed() {
					err = task.Place(sub, tc.fleets)
					got = sub.Spec.Extra.Constraint
				}
			}
			if want, bad := strings.CutPrefix(tc.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("got %v, want %q", err, want)
				}
			} else if err != nil || got != tc.want {
				t.Fatalf("got %q %v, want %q", got, err, tc.want)
			}
		})
	}
}
