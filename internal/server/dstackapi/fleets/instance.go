package fleets

import (
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

// instance is a node as an instance of a fleet.
func instance(n *core.Node, x *client.FleetInstance) wire.Instance {
	out := wire.Instance{
		ID: wire.UUID(wire.KindInstance, string(x.Node)), Backend: wire.Remote, Name: string(x.Node), InstanceNum: x.Num,
		Region: wire.Remote, Status: x.Status, HealthStatus: health(n), TotalBlocks: max(1, x.Blocks), BusyBlocks: x.Busy,
	}
	if n.Hardware.CPUs > 0 {
		t := instanceType(n)
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

// instanceType is what a node has, as clients show it.
func instanceType(n *core.Node) wire.InstanceType {
	r := wire.InstanceResources{
		CPUs: n.Hardware.CPUs, MemoryMiB: int64(n.Hardware.Memory >> 20), GPUs: []wire.InstanceGPU{},
		Disk: wire.InstanceDisk{SizeMiB: int64(n.Hardware.TmpDisk >> 20)},
	}
	if arch := archOf(n.Host.Arch); arch != "" {
		r.CPUArch = &arch
	}
	known := 0
	for _, u := range n.Hardware.Units {
		if u.Name == "gpu" {
			known++
			r.GPUs = append(r.GPUs, wire.InstanceGPU{
				Vendor: vendorOf(u.Vendor), Name: gpuName(u.Type), MemoryMiB: int64(u.Memory >> 20),
			})
		}
	}
	for _, g := range n.Hardware.Gres {
		if g.Name != "gpu" || known > 0 {
			continue
		}
		for range g.Count {
			r.GPUs = append(r.GPUs, wire.InstanceGPU{Vendor: "nvidia", Name: gpuName(g.Type)})
		}
	}
	return wire.InstanceType{Name: "instance", Resources: r}
}

// archOf is a processor's architecture in dstack's words; "" for others than it knows.
func archOf(arch string) string {
	switch arch {
	case "amd64", "x86_64", "x86":
		return "x86"
	case "arm64", "aarch64", "arm":
		return "arm"
	}
	return ""
}

// vendorOf is a vendor that clients know: they refuse other words.
func vendorOf(v string) string {
	switch v {
	case "amd", "google", "intel", "tenstorrent":
		return v
	}
	return "nvidia"
}

func gpuName(kind string) string {
	if kind == "" {
		return "GPU"
	}
	return strings.ToUpper(kind)
}
