package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/wire"
)

// use is what the containers of a job use on this node: CPU time in microseconds and memory. The keeper knows their
// stand-ins only; what they hold is in the engine's control groups, found by the first process of each. A runtime
// without those runs containers among the keeper's own processes, which are counted there.
func (c *containers) use(k wire.Key) (cpu, mem int64) {
	list, err := filepath.Glob(filepath.Join(c.dir, fmt.Sprintf("%d.%d.*", k.Job, k.Attempt), "pid"))
	if err != nil {
		return 0, 0
	}
	own := groupsOf("self")
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil || !c.alive(filepath.Base(filepath.Dir(path))) {
			continue
		}
		g := groupsOf(strings.TrimSpace(string(b)))
		if g.memory == "" || g.memory == own.memory {
			continue
		}
		cpu, mem = cpu+g.cpuTime(), mem+g.held()
	}
	return cpu, mem
}

// groups are the control groups of a process, as directories.
type groups struct {
	memory, cpu string
	v2          bool
}

const cgroupRoot = "/sys/fs/cgroup"

// groupsOf reads where a process is; empty: nowhere that is known.
func groupsOf(pid string) (g groups) {
	b, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return g
	}
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch names := "," + f[1] + ","; {
		case strings.Contains(names, ",memory,"):
			g.memory = filepath.Join(cgroupRoot, "memory", f[2])
		case strings.Contains(names, ",cpuacct,"):
			g.cpu = filepath.Join(cgroupRoot, f[1], f[2])
		case f[1] == "" && g.memory == "":
			if _, err := os.Stat(filepath.Join(cgroupRoot, f[2], "memory.current")); err == nil {
				g.memory, g.cpu, g.v2 = filepath.Join(cgroupRoot, f[2]), filepath.Join(cgroupRoot, f[2]), true
			}
		}
	}
	return g
}

// held is the memory without the cache of files, which the kernel takes back.
func (g *groups) held() int64 {
	total, cache := "memory.usage_in_bytes", "total_inactive_file "
	if g.v2 {
		total, cache = "memory.current", "inactive_file "
	}
	return max(0, numberIn(g.memory, total, "")-numberIn(g.memory, "memory.stat", cache))
}

// cpuTime is in microseconds.
func (g *groups) cpuTime() int64 {
	if g.v2 {
		return numberIn(g.cpu, "cpu.stat", "usage_usec ")
	}
	return numberIn(g.cpu, "cpuacct.usage", "") / 1000
}

// numberIn reads a number: the file, or the line of it that begins with a word. What ends meanwhile has none.
func numberIn(dir, name, word string) int64 {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
