package core_test

import (
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestNodeStateNames(t *testing.T) {
	t.Parallel()
	type st = core.NodeState
	for _, tc := range []struct {
		is            st
		slurm, dstack string
		unreachable   bool
	}{
		{st{}, "IDLE", "idle", false},
		{st{Alloc: 2}, "MIXED", "busy", false},
		{st{Alloc: 4}, "ALLOCATED", "busy", false},
		{st{Completing: true}, "IDLE+COMPLETING", "busy", false},
		{st{Flags: core.NodeDrain}, "IDLE+DRAIN", "idle", false},
		{st{Flags: core.NodeDrain, Alloc: 1}, "MIXED+DRAIN", "busy", false},
		{st{Flags: core.NodeDown}, "DOWN", "idle", false},
		{st{Flags: core.NodeDown | core.NodeDrain}, "DOWN+DRAIN", "idle", false},
		{st{Flags: core.NodeFailFlag}, "IDLE+FAIL", "idle", false},
		{st{Flags: core.NodeFailFlag, Alloc: 4}, "ALLOCATED+FAIL", "busy", false},
		{st{Flags: core.NodeMaint, Reserved: true}, "IDLE+MAINTENANCE+RESERVED", "idle", false},
		{st{Reserved: true}, "IDLE+RESERVED", "idle", false},
		{st{Planned: true}, "IDLE+PLANNED", "idle", false},
		{st{Flags: core.NodeFuture}, "FUTURE", "terminated", false},
		{st{Flags: core.NodeUnknown}, "UNKNOWN", "pending", false},
		{st{Flags: core.NodeUnknown, Making: true}, "UNKNOWN", "provisioning", false},
		{st{Flags: core.NodeUnknown | core.NodePoweringUp, Cloud: true}, "IDLE+POWERING_UP+CLOUD", "provisioning", false},
		{st{Flags: core.NodeReboot, Alloc: 2}, "MIXED+REBOOT_REQUESTED", "busy", false},
		{st{Flags: core.NodeDrain | core.NodeReboot}, "IDLE+DRAIN+REBOOT_REQUESTED", "idle", false},
		{st{Flags: core.NodeRebooting}, "IDLE+REBOOT_ISSUED", "idle", false},
		{st{Flags: core.NodeRebooting | core.NodeSilent}, "IDLE+REBOOT_ISSUED+NOT_RESPONDING", "idle", true},
		{st{Flags: core.NodePowerDown, Alloc: 1}, "MIXED+POWER_DOWN", "busy", false},
		{st{Flags: core.NodePoweringDown}, "IDLE+POWERING_DOWN", "terminating", false},
		{st{Flags: core.NodePoweringDown | core.NodePoweringUp}, "IDLE+POWERING_DOWN+POWERING_UP", "terminating", false},
		{st{Flags: core.NodeUnknown | core.NodePoweredDown, Cloud: true}, "IDLE+POWERED_DOWN+CLOUD", "terminated", false},
		{st{Flags: core.NodePoweredDown}, "IDLE+POWERED_DOWN", "terminated", false},
		{st{Flags: core.NodePoweredDown | core.NodeSilent}, "IDLE+POWERED_DOWN+NOT_RESPONDING", "terminated", false},
		{st{Flags: core.NodePoweringUp, Cloud: true}, "IDLE+POWERING_UP+CLOUD", "provisioning", false},
		{st{Flags: core.NodeSilent}, "DOWN+NOT_RESPONDING", "idle", true},
		{st{Flags: core.NodeSilent, Alloc: 4}, "ALLOCATED+NOT_RESPONDING", "busy", true},
		{st{Leaving: true, Flags: core.NodeDown}, "DOWN", "terminating", false},
	} {
		tc.is.CPUs = 4
		if got := tc.is.Slurm(); got != tc.slurm {
			t.Errorf("%+v: Slurm's name is %s, want %s", tc.is, got, tc.slurm)
		}
		if status, away := tc.is.Dstack(); status != tc.dstack || away != tc.unreachable {
			t.Errorf("%+v: dstack's name is %s (unreachable: %t), want %s (%t)", tc.is, status, away, tc.dstack, tc.unreachable)
		}
	}
}
