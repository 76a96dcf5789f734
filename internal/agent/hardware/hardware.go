package hardware

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Override replaces what was found on the machine. Zero fields do not.
type Override struct {
	CPUs     int32
	Sockets  int32
	Cores    int32 // a socket
	Threads  int32 // a core
	Memory   core.Bytes
	TmpDisk  core.Bytes
	Gres     []core.Gres // units without devices
	Units    []core.Unit // what is known of them
	Fake     gpu.List    // GPUs that are not there, in place of those that are
	NoDetect bool        // do not look for GPUs and disks: the node is less than its host
}

// Machine is what the agent found: the hardware it offers, and which CPUs of the machine stand behind it.
type Machine struct {
	core.Hardware
	cpus []int // CPU numbers of the kernel this process may use, socket by socket and core by core
	GPUs gpu.List
	// Who finds and reads them, and what of it failed.
	Vendors  []gpu.Vendor
	Failures []error
}

// Detect looks at the machine below root ("/" outside tests).
func Detect(ctx context.Context, root fs.FS, tmp string, o Override) (Machine, error) {
	m := Machine{cpus: allowedCPUs()}
	if len(m.cpus) == 0 {
		return m, fmt.Errorf("this process may use no CPU")
	}
	m.CPUs = int32(len(m.cpus))
	inOrder(root, m.cpus)
	m.Sockets, m.Cores, m.Threads = topology(root, m.cpus)
	mem, err := MemInfo(root, "MemTotal")
	if err != nil {
		return m, err
	}
	m.Memory = mem
	if !o.NoDetect {
		m.TmpDisk = diskSize(tmp)
	}
	switch {
	case o.Fake != nil:
		m.GPUs = o.Fake
	case !o.NoDetect && o.Gres == nil:
		m.Vendors = gpu.Machine{}.Vendors()
		seen, errs := gpu.Look(ctx, m.Vendors)
		for i := range seen {
			m.GPUs = append(m.GPUs, seen[i].Device)
		}
		m.Failures = errs
		locate(root, m.GPUs, m.cpus)
	}
	m.Gres, m.Units = m.GPUs.Count()
	o.apply(&m.Hardware)
	return m, nil
}

// apply lays the override over h. A shape that does not give the number of CPUs is replaced by single cores.
func (o Override) apply(h *core.Hardware) {
	if o.Sockets|o.Cores|o.Threads != 0 {
		h.Sockets, h.Cores, h.Threads = max(1, o.Sockets), max(1, o.Cores), max(1, o.Threads)
		h.CPUs = h.Sockets * h.Cores * h.Threads
	}
	if o.CPUs != 0 {
		h.CPUs = o.CPUs
	}
	if n := h.Sockets * h.Cores; n*h.Threads != h.CPUs && n != h.CPUs { // CPUs are threads or cores
		h.Sockets, h.Cores, h.Threads = 1, h.CPUs, 1
	}
	if o.Memory != 0 {
		h.Memory = o.Memory
	}
	if o.TmpDisk != 0 {
		h.TmpDisk = o.TmpDisk
	}
	if o.Gres != nil {
		h.Gres, h.Units = o.Gres, o.Units
	}
}

// CPUSet translates CPU indices of an allocation ("0-1,3") into the kernel's numbers, or gives "" when they are more
// than the machine has: emulated CPUs cannot be bound.
func (m Machine) CPUSet(list string) string {
	idx, err := parseList(list)
	if err != nil || int(m.CPUs) > len(m.cpus) {
		return ""
	}
	out := make([]int, 0, len(idx))
	for _, i := range idx {
		if i >= len(m.cpus) {
			return ""
		}
		out = append(out, m.cpus[i])
	}
	return foldList(out)
}

func allowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

// topology counts sockets, cores a socket and threads a core of the given CPUs; where they are not the same everywhere
// it counts single cores.
func topology(root fs.FS, cpus []int) (sockets, cores, threads int32) {
	n := int32(len(cpus))
	type core struct{ socket, core string }
	bySocket, byCore := map[string]bool{}, map[core]bool{}
	for _, c := range cpus {
		dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology", c)
		s, err1 := fs.ReadFile(root, path.Join(dir, "physical_package_id"))
		k, err2 := fs.ReadFile(root, path.Join(dir, "core_id"))
		if err1 != nil || err2 != nil {
			return 1, n, 1
		}
		at := core{strings.TrimSpace(string(s)), strings.TrimSpace(string(k))}
		bySocket[at.socket], byCore[at] = true, true
	}
	sockets = int32(len(bySocket))
	cores = int32(len(byCore)) / sockets
	threads = n / int32(len(byCore))
	if sockets*cores*threads != n {
		return 1, n, 1
	}
	return sockets, cores, threads
}

// MemInfo reads one line of /proc/meminfo.
func MemInfo(root fs.FS, key string) (core.Bytes, error) {
	b, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		if name != key {
			continue
		}
		f := strings.Fields(rest)
		if len(f) == 0 {
			break
		}
		kib, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: %s: %w", key, err)
		}
		return core.Bytes(kib) * core.KiB, nil
	}
	return 0, fmt.Errorf("/proc/meminfo has no %s", key)
}

func diskSize(dir string) core.Bytes {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return 0
	}
	return core.Bytes(int64(st.Blocks) * st.Bsize)
}

// LoadAvg is the one-minute load.
func LoadAvg(root fs.FS) float64 {
	b, err := fs.ReadFile(root, "proc/loadavg")
	if err != nil {
		return 0
	}
	word, _, _ := strings.Cut(string(b), " ")
	v, _ := strconv.ParseFloat(word, 64) // 0 when the kernel says nothing we know
	return v
}

// HostInfo tells about the machine under the agent.
func HostInfo(root fs.FS) core.Host {
	h := core.Host{}
	h.Hostname, _ = os.Hostname() // an empty name is shown as such
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		sys, rel, ver := unix.ByteSliceToString(u.Sysname[:]), unix.ByteSliceToString(u.Release[:]),
			unix.ByteSliceToString(u.Version[:])
		h.OS = sys + " " + rel + " " + ver // as Slurm 22.05: scontrol show node, OS=
		h.Arch = unix.ByteSliceToString(u.Machine[:])
	}
	h.BootID = BootID(root)
	if up := BootTime(); up > 0 {
		h.Boot = core.At(time.Now().Add(-up).Round(time.Second))
	}
	h.UID = uint32(os.Getuid())
	h.Root = os.Geteuid() == 0
	return h
}

func BootID(root fs.FS) string {
	b, err := fs.ReadFile(root, "proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// BootTime is the time since the machine started, suspension included: the clock of fences.
func BootTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// parseList reads the kernel's list form, "0-3,8".
func parseList(s string) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		a, err1 := strconv.Atoi(lo)
		b, err2 := strconv.Atoi(hi)
		if err1 != nil || err2 != nil || a < 0 || b < a || b > 1<<16 {
			return nil, fmt.Errorf("%q is no list of numbers", s)
		}
		for i := a; i <= b; i++ {
			out = append(out, i)
		}
	}
	return out, nil
}

func foldList(n []int) string {
	slices.Sort(n)
	var b strings.Builder
	for i := 0; i < len(n); {
		j := i
		for j+1 < len(n) && n[j+1] == n[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(n[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(n[j]))
		}
		i = j + 1
	}
	return b.String()
}

// MissingLimits lists the limits that the node's cgroups cannot hold; without cgroups nothing is held, which the
// containment says.
func (m Machine) MissingLimits(h *wire.KeeperHello) []string {
	if h.Containment == wire.Weak || h.Containment == wire.PIDNS || h.Containment == "" {
		return nil
	}
	var out []string
	want := []string{"memory", "cpuset", "pids"}
	if len(m.GPUs) > 0 {
		want = append(want, "devices")
	}
	for _, name := range want {
		if !slices.Contains(h.Enforces, name) {
			out = append(out, name)
		}
	}
	return out
}
