package convert

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
)

// instanceName is the type of every machine, as dstack calls that of an SSH host.
const instanceName = "instance"

// InstanceType is a node as clients see it.
func InstanceType(n *core.Node) wire.InstanceType {
	t := wire.InstanceType{Name: instanceName, Resources: share(n, 1, 1)}
	t.Resources.CPUArch = archOf(n.Host.Arch)
	return t
}

// share is what blocks of a node have, of so many that it is split into.
func share(n *core.Node, blocks, of int32) wire.InstanceResources {
	h := &n.Hardware
	gpus := GPUs(n)
	return wire.InstanceResources{
		CPUs: h.CPUs * blocks / of, MemoryMiB: int64(h.Memory/core.MiB) * int64(blocks) / int64(of),
		GPUs: gpus[:len(gpus)*int(blocks)/int(of)],
		Disk: wire.InstanceDisk{SizeMiB: int64(h.TmpDisk / core.MiB)},
	}
}

// GPUs lists the GPUs of a node. What is not known of one is left empty.
func GPUs(n *core.Node) []wire.InstanceGPU {
	list := []wire.InstanceGPU{}
	for _, g := range n.Hardware.Gres {
		if g.Name != "gpu" {
			continue
		}
		of := core.Unit{Type: g.Type}
		for _, u := range n.Hardware.Units {
			if u.Name == "gpu" && u.Type == g.Type {
				of = u
				break
			}
		}
		for range min(g.Count, 1024) {
			list = append(list, gpu(of))
		}
	}
	return list
}

func gpu(u core.Unit) wire.InstanceGPU {
	out := wire.InstanceGPU{Name: strings.ToUpper(u.Type), MemoryMiB: int64(u.Memory / core.MiB), Vendor: u.Vendor}
	if out.Name == "" {
		out.Name = "GPU"
	}
	if out.Vendor == "" || out.Vendor == "fake" {
		out.Vendor = "nvidia" // clients take no other word for one that is not known
	}
	return out
}

// archOf is dstack's word for an architecture; nil where it has none.
func archOf(arch string) *string {
	word := ""
	switch strings.ToLower(arch) {
	case "x86_64", "amd64", "x86":
		word = "x86"
	case "aarch64", "arm64", "arm":
		word = "arm"
	default:
		return nil
	}
	return &word
}
