package core

import (
	"encoding/json"
	"testing"
)

// Recordings have rules and units as words, and an empty one is the default.
func TestSchedulingWords(t *testing.T) {
	t.Parallel()
	for _, r := range Rules {
		b, _ := json.Marshal(r)
		var back Rule
		if err := json.Unmarshal(b, &back); err != nil || back != r {
			t.Errorf("rule %s came back as %s: %v", b, back, err)
		}
	}
	if len(Rules) != len(ruleNames) {
		t.Errorf("%d rules of %d are listed", len(Rules), len(ruleNames))
	}
	for text, want := range map[string]AllocUnit{
		`""`: UnitCore, `"core"`: UnitCore, `"CPU"`: UnitCPU, `"socket"`: UnitSocket,
	} {
		var u AllocUnit
		if err := json.Unmarshal([]byte(text), &u); err != nil || u != want {
			t.Errorf("unit %s is %s: %v", text, u, err)
		}
	}
	var r Rule
	var u AllocUnit
	if json.Unmarshal([]byte(`""`), &r) != nil || r != RuleEASY || json.Unmarshal([]byte(`"best"`), &r) == nil ||
		json.Unmarshal([]byte(`"rack"`), &u) == nil {
		t.Error("an empty rule is not the default, or an unknown one was taken")
	}
}
