package hardware

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/wire"
)

// spot is where a CPU of the kernel is.
type spot struct{ socket, core int }

// spots reads where CPUs are; nil if the kernel does not say of each.
func spots(root fs.FS, cpus []int) map[int]spot {
	out := make(map[int]spot, len(cpus))
	for _, c := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology", c)
		s, ok1 := readInt(root, path.Join(dir, "physical_package_id"))
		k, ok2 := readInt(root, path.Join(dir, "core_id"))
		if !ok1 || !ok2 {
			return nil
		}
		out[c] = spot{s, k}
	}
	return out
}

func readInt(root fs.FS, name string) (int, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	return n, err == nil
}

// inOrder sorts CPUs socket by socket, core by core: the order in which allocations count them. The kernel often counts
// the second threads of all cores after the first ones.
func inOrder(root fs.FS, cpus []int) {
	at := spots(root, cpus)
	if at == nil {
		return
	}
	slices.SortFunc(cpus, func(a, b int) int {
		return cmp.Or(cmp.Compare(at[a].socket, at[b].socket), cmp.Compare(at[a].core, at[b].core), cmp.Compare(a, b))
	})
}

// socketOf finds the socket a PCI device is attached to, counted from 1; 0: not known.
func socketOf(root fs.FS, bus string, cpus []int) int32 {
	b, err := fs.ReadFile(root, path.Join("sys/bus/pci/devices", bus, "local_cpulist"))
	if err != nil {
		return 0
	}
	near, err := parseList(strings.TrimSpace(string(b)))
	at := spots(root, cpus)
	if err != nil || at == nil {
		return 0
	}
	var sockets, mine []int
	for _, c := range cpus {
		if s := at[c].socket; !slices.Contains(sockets, s) {
			sockets = append(sockets, s)
		}
	}
	slices.Sort(sockets)
	for _, c := range near {
		if p, ok := at[c]; ok && !slices.Contains(mine, p.socket) {
			mine = append(mine, p.socket)
		}
	}
	if len(mine) != 1 { // it is near to all of them
		return 0
	}
	return int32(slices.Index(sockets, mine[0]) + 1)
}

// gpuVariables are the variables that name a job's GPUs to its programs.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}

// makerVariables are those that name the devices of other makers, whose programs know none of the above.
var makerVariables = map[string]string{"intel": "ZE_AFFINITY_MASK", "tenstorrent": "TT_VISIBLE_DEVICES"}

// RenameUnits puts the names this machine's driver has for units in their places in a launch. Where the other GPUs are
// hidden the driver counts those that are left from zero.
func (m Machine) RenameUnits(l *wire.Launch, hidden bool) {
	if len(m.GPUs) == 0 {
		return
	}
	var mine []int32
	for _, g := range l.Gres {
		if g.Name == "gpu" {
			mine = append(mine, g.Units...)
		}
	}
	slices.Sort(mine)
	change, maker := hidden, ""
	name := func(unit string) string {
		u, err := strconv.Atoi(unit)
		if err != nil || u < 0 || u >= len(m.GPUs) || !slices.Contains(mine, int32(u)) {
			return unit
		}
		if g := &m.GPUs[u]; g.Part() || g.Variable != "" || !hidden {
			return cmp.Or(g.Visible, unit)
		}
		return strconv.Itoa(m.rank(mine, int32(u)))
	}
	for _, u := range mine {
		if int(u) < len(m.GPUs) {
			g := &m.GPUs[u]
			change = change || g.Visible != "" && g.Visible != strconv.Itoa(int(u))
			maker = cmp.Or(maker, g.Variable, makerVariables[g.Vendor])
		}
	}
	if !change && maker == "" {
		return
	}
	var env []byte
	for one := range bytes.SplitSeq(l.Env, []byte{0}) {
		if len(one) > 0 {
			for _, e := range renamed(string(one), maker, name) {
				env = append(append(env, e...), 0)
			}
		}
	}
	l.Env = env
	for i := range l.Program.Tasks {
		var list []string
		for _, e := range l.Program.Tasks[i].Env {
			list = append(list, renamed(e, maker, name)...)
		}
		l.Program.Tasks[i].Env = list
	}
}

// rank is a GPU's number among the whole ones of its maker's that a job has.
func (m Machine) rank(mine []int32, unit int32) int {
	n := 0
	for _, u := range mine {
		if u < unit && int(u) < len(m.GPUs) && !m.GPUs[u].Part() && m.GPUs[u].Vendor == m.GPUs[unit].Vendor {
			n++
		}
	}
	return n
}

// renamed is a variable with the driver's names, and behind it the one that its maker's programs read.
func renamed(variable, maker string, name func(string) string) []string {
	key, value, _ := strings.Cut(variable, "=")
	if !slices.Contains(gpuVariables, key) {
		return []string{variable}
	}
	units := strings.Split(value, ",")
	for i := range units {
		units[i] = name(units[i])
	}
	value = strings.Join(units, ",")
	if maker != "" && key == gpuVariables[0] {
		return []string{key + "=" + value, maker + "=" + value}
	}
	return []string{key + "=" + value}
}

// locate fills in which sockets GPUs are at.
func locate(root fs.FS, gpus gpu.List, cpus []int) {
	for i := range gpus {
		if gpus[i].Bus != "" {
			gpus[i].Socket = socketOf(root, gpus[i].Bus, cpus)
		}
	}
}

// ShownDevices lists the devices of a job's units: those of NVIDIA by UUID, which their container runtime asks for,
// others as files.
func (m Machine) ShownDevices(l *wire.Launch) (files, gpus []string) {
	mine := m.GPUs.Of(l.Gres)
	for i := range mine {
		switch d := &mine[i]; d.Vendor {
		case "nvidia":
			gpus = append(gpus, d.UUID)
		case "amd":
			if !slices.Contains(files, "/dev/kfd") { // all of them compute through it
				files = append(files, "/dev/kfd")
			}
			files = append(files, d.Files...)
		default:
			files = append(files, d.Files...)
		}
	}
	return files, gpus
}

// NVIDIAFiles are the device files of a job's NVIDIA GPUs, with those that all of them compute through.
func (m Machine) NVIDIAFiles(l *wire.Launch) (files []string) {
	mine := m.GPUs.Of(l.Gres)
	for i := range mine {
		if mine[i].Vendor == "nvidia" {
			files = append(files, mine[i].Files...)
		}
	}
	if len(files) == 0 {
		return nil
	}
	for _, f := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"} {
		if _, err := os.Stat(f); err == nil {
			files = append(files, f)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}
