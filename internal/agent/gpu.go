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
	model string
	file  string // its device file; empty: not known
}

// nvidia asks nvidia-smi, where there is one.
func nvidia(ctx context.Context, root fs.FS) []gpu {
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
	return parseNvidia(string(out), root)
}

// parseNvidia reads lines of index, PCI address and name.
func parseNvidia(csv string, root fs.FS) []gpu {
	var list []gpu
	for line := range strings.Lines(csv) {
		f := strings.SplitN(strings.TrimSpace(line), ",", 3)
		if len(f) == 3 {
			list = append(list, gpu{model: gpuModel(f[2]), file: nvidiaFile(root, strings.TrimSpace(f[1]))})
		}
	}
	return list
}

// nvidiaFile finds the device file of a GPU. Its number is the driver's minor, which need not be the index of nvidia-smi:
// that goes by PCI address.
func nvidiaFile(root fs.FS, bus string) string {
	bus = strings.ToLower(bus)
	if domain, rest, ok := strings.Cut(bus, ":"); ok && len(domain) > 4 { // nvidia-smi writes eight digits, the driver four
		bus = domain[len(domain)-4:] + ":" + rest
	}
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

// countGPUs makes of GPUs what the node offers: units numbered from zero within each model.
func countGPUs(gpus []gpu) []core.Gres {
	var list []core.Gres
	for _, g := range gpus {
		if i := slices.IndexFunc(list, func(l core.Gres) bool { return l.Type == g.model }); i >= 0 {
			list[i].Count++
		} else {
			list = append(list, core.Gres{Name: "gpu", Type: g.model, Count: 1})
		}
	}
	return list
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
		var units []int // indices of the GPUs these units are numbers of
		for i := range m.gpus {
			if g.Type == "" || m.gpus[i].model == g.Type {
				units = append(units, i)
			}
		}
		for _, u := range g.Units {
			if u < 0 || int(u) >= len(units) {
				return nil
			}
			mine[units[u]] = true
		}
	}
	var out []string
	for i, g := range m.gpus {
		if !mine[i] && g.file != "" {
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
