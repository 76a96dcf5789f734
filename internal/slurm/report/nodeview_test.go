package report

import "testing"

// What sinfo makes of states, by the order of Slurm's conditions.
func TestNodeWords(t *testing.T) {
	t.Parallel()
	for state, want := range map[string][2]string{
		"IDLE": {"idle", "idle"}, "MIXED": {"mix", "mixed"}, "ALLOCATED": {"alloc", "allocated"}, "DOWN": {"down", "down"},
		"FUTURE": {"futr", "future"}, "UNKNOWN": {"unk", "unknown"}, "IDLE+RESERVED": {"resv", "reserved"},
		"IDLE+COMPLETING": {"comp", "completing"}, "ALLOCATED+COMPLETING": {"alloc+", "allocated+"},
		"IDLE+DRAIN":  {"drain", "drained"},
		"MIXED+DRAIN": {"drng", "draining"}, "IDLE+FAIL": {"fail", "fail"}, "MIXED+FAIL": {"failg", "failing"},
		"IDLE+MAINTENANCE+RESERVED": {"maint", "maint"}, "MIXED+MAINTENANCE": {"mix$", "mixed$"},
		"IDLE+PLANNED":  {"plnd", "planned"},
		"MIXED+PLANNED": {"mix-", "mixed-"}, "DOWN+NOT_RESPONDING": {"down*", "down*"},
		"IDLE+DRAIN+NOT_RESPONDING": {"drain*", "drained*"},
		"MIXED+REBOOT_REQUESTED":    {"mix@", "mixed@"}, "MIXED+DRAIN+REBOOT_REQUESTED": {"drng@", "draining@"},
		"IDLE+REBOOT_ISSUED": {"boot^", "reboot^"}, "IDLE+REBOOT_ISSUED+NOT_RESPONDING": {"boot^", "reboot^"},
		"IDLE+POWERED_DOWN": {"idle~", "idle~"}, "IDLE+POWERING_UP": {"idle#", "idle#"},
		"MIXED+POWER_DOWN":        {"mix!", "mixed!"},
		"IDLE+POWERED_DOWN+CLOUD": {"idle~", "idle~"},
	} {
		if compact, long := parseNodeState(state).words(); compact != want[0] || long != want[1] {
			t.Errorf("%s is shown as %s and %s, want %s and %s", state, compact, long, want[0], want[1])
		}
	}
	for _, tc := range []struct {
		state, word string
		want        bool
	}{
		{"IDLE+REBOOT_ISSUED", "reboot", true},
		{"MIXED+REBOOT_REQUESTED", "reboot_issued", false},
		{"IDLE+POWERED_DOWN", "powered_down", true},
		{"IDLE+POWERING_UP", "power_up", true},
		{"IDLE", "power_up", false},
		{"MIXED+DRAIN", "drain", true},
		{"MIXED+DRAIN", "drained", false},
	} {
		if got := parseNodeState(tc.state).matches(tc.word); got != tc.want {
			t.Errorf("%s matches -t %s: %t", tc.state, tc.word, got)
		}
	}
}
