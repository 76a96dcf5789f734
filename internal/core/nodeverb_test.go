package core

import (
	"encoding/json"
	"testing"
)

// The verbs are stored in recordings and sent by commands: the words stay.
func TestNodeVerbs(t *testing.T) {
	t.Parallel()
	const want = `["drain","undrain","resume","down","fail","future","power_up","power_down","power_down_asap",` +
		`"power_down_force","reboot","reboot_asap","cancel_reboot"]`
	if got, _ := json.Marshal(NodeVerbs); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	ends, reasons := "", ""
	for _, v := range NodeVerbs {
		if v.EndsJobs() {
			ends += " " + string(v)
		}
		if v.NeedsReason() {
			reasons += " " + string(v)
		}
	}
	if ends != " down power_down_force" || reasons != " drain down fail" {
		t.Errorf("jobs end with%s; a reason is needed for%s", ends, reasons)
	}
}
