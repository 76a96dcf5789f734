package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
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

// parseLinks reads the matrix of `nvidia-smi topo -m` and numbers the sets of GPUs that NVLink joins, from 1; those that
// it joins to no other have 0.
func parseLinks(text string, n int) []int32 {
	links := make([]int32, n)
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	find := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		row, ok := gpuNumber(f[0])
		if _, header := gpuNumber(f[1]); !ok || header || row >= n {
			continue
		}
		for col, cell := range f[1:] {
			if col < n && strings.HasPrefix(cell, "NV") && cell != "NODE" {
				parent[max(find(row), find(col))] = min(find(row), find(col))
			}
		}
	}
	next := int32(0)
	for i := range n {
		if root := find(i); root != i {
			if links[root] == 0 {
				next++
				links[root] = next
			}
			links[i] = links[root]
		}
	}
	return links
}

func gpuNumber(word string) (int, bool) {
	digits, ok := strings.CutPrefix(word, "GPU")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil
}

// partitioned replaces GPUs that are divided (MIG) by their parts, as `nvidia-smi -L` lists them. A part's type is its
// profile, and programs are told of it by its UUID.
func partitioned(gpus []gpu, list string) []gpu {
	out := make([]gpu, 0, len(gpus))
	at := -1
	parts := map[int][]gpu{}
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		switch {
		case len(f) > 1 && f[0] == "GPU":
			n, err := strconv.Atoi(strings.TrimSuffix(f[1], ":"))
			if at = n; err != nil || n >= len(gpus) {
				at = -1
			}
		case len(f) > 1 && f[0] == "MIG" && at >= 0:
			_, id, _ := strings.Cut(line, "UUID:")
			part := gpus[at]
			part.model, part.visible = f[1], strings.TrimRight(strings.TrimSpace(id), ")")
			parts[at] = append(parts[at], part)
		}
	}
	for i, g := range gpus {
		if len(parts[i]) > 0 {
			out = append(out, parts[i]...)
			continue
		}
		g.visible = strconv.Itoa(i)
		out = append(out, g)
	}
	return out
}

// gpuVariables are the variables that name a job's GPUs to its programs.
var gpuVariables = []string{"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"}

// rename puts the names this machine's driver has for units in their places in a launch. Where the other GPUs are hidden
// the driver counts those that are left from zero.
func (m machine) rename(l *wire.Launch, hidden bool) {
	if len(m.gpus) == 0 {
		return
	}
	var mine []int32
	for _, g := range l.Gres {
		if g.Name == "gpu" {
			mine = append(mine, g.Units...)
		}
	}
	slices.Sort(mine)
	change := hidden
	name := func(unit string) string {
		u, err := strconv.Atoi(unit)
		if err != nil || u < 0 || u >= len(m.gpus) || !slices.Contains(mine, int32(u)) {
			return unit
		}
		if g := m.gpus[u]; strings.HasPrefix(g.visible, "MIG-") || !hidden {
			return cmp.Or(g.visible, unit)
		}
		return strconv.Itoa(m.rank(mine, int32(u)))
	}
	for _, u := range mine {
		change = change || int(u) < len(m.gpus) && m.gpus[u].visible != "" && m.gpus[u].visible != strconv.Itoa(int(u))
	}
	if !change {
		return
	}
	var env []byte
	for one := range bytes.SplitSeq(l.Env, []byte{0}) {
		if len(one) > 0 {
			env = append(append(env, renamed(string(one), name)...), 0)
		}
	}
	l.Env = env
	for i := range l.Program.Tasks {
		for k, e := range l.Program.Tasks[i].Env {
			l.Program.Tasks[i].Env[k] = renamed(e, name)
		}
	}
}

// rank is a GPU's number among the whole ones of a job.
func (m machine) rank(mine []int32, unit int32) int {
	n := 0
	for _, u := range mine {
		if u < unit && int(u) < len(m.gpus) && !strings.HasPrefix(m.gpus[u].visible, "MIG-") {
			n++
		}
	}
	return n
}

func renamed(variable string, name func(string) string) string {
	key, value, _ := strings.Cut(variable, "=")
	if !slices.Contains(gpuVariables, key) {
		return variable
	}
	units := strings.Split(value, ",")
	for i := range units {
		units[i] = name(units[i])
	}
	return key + "=" + strings.Join(units, ",")
}

// locate fills in where GPUs are.
func locate(root fs.FS, gpus []gpu, cpus []int, topo string) {
	links := parseLinks(topo, len(gpus))
	for i := range gpus {
		gpus[i].links = links[i]
		if gpus[i].bus != "" {
			gpus[i].socket = socketOf(root, gpus[i].bus, cpus)
		}
	}
}

// described tells whether units say more than their number and type do.
func described(units []core.Unit) bool {
	for i, u := range units {
		if u.Socket != 0 || u.Links != 0 || i > 0 && u.Type != units[i-1].Type {
			return true
		}
	}
	return false
}
