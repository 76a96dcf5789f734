package fleets

import (
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// instance is a node as an instance of a fleet.
func instance(n *core.Node, x *client.FleetInstance) wire.Instance {
	out := wire.Instance{
		ID: wire.UUID(wire.KindInstance, string(x.Node)), Backend: wire.Remote, Name: string(x.Node), InstanceNum: x.Num,
		Region: wire.Remote, Status: x.Status, HealthStatus: health(n), TotalBlocks: max(1, x.Blocks), BusyBlocks: x.Busy,
	}
	if n.Hardware.CPUs > 0 {
		t := convert.InstanceType(n)
		out.InstanceType = &t
	}
	if x.Status == "unreachable" {
		out.Unreachable, out.Status = true, wire.InstanceIdle
		if x.AllocCPUs > 0 {
			out.Status = wire.InstanceBusy
		}
	}
	if out.TotalBlocks == 1 && out.Status == wire.InstanceBusy {
		out.BusyBlocks = 1
	}
	if x.Cause != "" {
		cause := x.Cause
		out.TerminationReasonMessage = &cause
	}
	return out
}

// health is what the checks of a node say.
func health(n *core.Node) string {
	for _, f := range n.Faults {
		if f.Drain {
			return wire.HealthFailure
		}
	}
	if len(n.Faults) > 0 || len(n.Hardware.Sick) > 0 {
		return wire.HealthWarning
	}
	return wire.Healthy
}
