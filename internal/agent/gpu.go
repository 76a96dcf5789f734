package agent

import (
	"context"
	"io/fs"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// gpu is one GPU of the machine.
type gpu struct {
	model   string
	file    string // its device file; empty: not known. Parts of one GPU share it
	bus     string // its PCI address, as the kernel writes it
	visible string // what programs are to call it; empty: its index
	// Where it is, as core.Unit says it.
	socket, links int32
}

// nvidia asks nvidia-smi, where there is one.
func nvidia(ctx context.Context, root fs.FS, cpus []int) []gpu {
	prog, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, prog, "--query-gpu=index,pci.bus_id,name", "--format=csv,noheader").Output()
	if err != nil {
		return nil
	}
	gpus := parseNvidia(string(out), root)
	topo, _ := exec.CommandContext(ctx, prog, "topo", "-m").Output() // without it nothing is known of links
	locate(root, gpus, cpus, string(topo))
	list, _ := exec.CommandContext(ctx, prog, "-L").Output() // without it every GPU is whole
	return partitioned(gpus, string(list))
}

// parseNvidia reads lines of index, PCI address and name.
func parseNvidia(csv string, root fs.FS) []gpu {
	var list []gpu
	for line := range strings.Lines(csv) {
		f := strings.SplitN(strings.TrimSpace(line), ",", 3)
		if len(f) == 3 {
			bus := kernelBus(strings.TrimSpace(f[1]))
			list = append(list, gpu{model: gpuModel(f[2]), file: nvidiaFile(root, bus), bus: bus})
		}
	}
	return list
}

// kernelBus writes a PCI address as the kernel does: nvidia-smi has eight digits of domain, the kernel four.
func kernelBus(bus string) string {
	bus = strings.ToLower(bus)
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) > 4 {
		return domain[len(domain)-4:] + ":" + rest
	}
	return bus
}

// nvidiaFile finds the device file of a GPU. Its number is the driver's minor, which need not be the index of nvidia-smi:
// that goes by PCI address.
func nvidiaFile(root fs.FS, bus string) string {
	b, err := fs.ReadFile(root, path.Join("proc/driver/nvidia/gpus", bus, "information"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, minor, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == "Device Minor" {
			return "/dev/nvidia" + strings.TrimSpace(minor)
		}
	}
	return ""
}

// countGPUs makes of GPUs what the node offers: how many of each model, and of each its index, which goes over all
// models as the driver's does.
func countGPUs(gpus []gpu) (list []core.Gres, units []core.Unit) {
	for n, g := range gpus {
		if i := slices.IndexFunc(list, func(l core.Gres) bool { return l.Type == g.model }); i >= 0 {
			list[i].Count++
		} else {
			list = append(list, core.Gres{Name: "gpu", Type: g.model, Count: 1})
		}
		units = append(units, core.Unit{Name: "gpu", Type: g.model, Index: int32(n), Socket: g.socket, Links: g.links})
	}
	if !described(units) {
		units = nil
	}
	return list, units
}

// denied lists the device files of the machine's GPUs that are not among a job's units. Where a unit is given that is not
// known here, because somebody else than detection described the node, nothing is denied: better a GPU too many than
// a job without its own.
func (m machine) denied(given []core.GresAlloc) []string {
	mine := make([]bool, len(m.gpus))
	for _, g := range given {
		if g.Name != "gpu" {
			continue
		}
		for _, u := range g.Units {
			if u < 0 || int(u) >= len(m.gpus) || g.Type != "" && m.gpus[u].model != g.Type {
				return nil
			}
			mine[u] = true
		}
	}
	var out, keep []string // parts of one GPU have one file
	for i, g := range m.gpus {
		if mine[i] {
			keep = append(keep, g.file)
		}
	}
	for _, g := range m.gpus {
		if g.file != "" && !slices.Contains(keep, g.file) && !slices.Contains(out, g.file) {
			out = append(out, g.file)
		}
	}
	return out
}

// gpuModel shortens a product name to the word people ask for: "NVIDIA A100-SXM4-80GB" is "a100", "NVIDIA GeForce RTX
// 4090" is "rtx4090".
func gpuModel(name string) string {
	f := strings.Fields(strings.ToLower(name))
	for len(f) > 1 && slices.Contains([]string{"nvidia", "geforce", "tesla", "quadro", "graphics", "device"}, f[0]) {
		f = f[1:]
	}
	if len(f) == 0 {
		return ""
	}
	word, _, _ := strings.Cut(f[0], "-")
	if (word == "rtx" || word == "gtx" || word == "titan") && len(f) > 1 {
		next, _, _ := strings.Cut(f[1], "-")
		word += next
	}
	return word
}
