package initd

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// Where the engine shows a container its own control group: v2, then v1.
var (
	peakFiles   = []string{"/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes"}
	memoryFiles = []string{"/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}
	eventFiles  = []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"}
)

func used2(u *unix.Rusage) wire.Used {
	return wire.Used{UserCPU: u.Utime.Nano() / 1000, SysCPU: u.Stime.Nano() / 1000, MaxRSS: u.Maxrss << 10}
}

// usageNow is what all that has ended used, and the memory of what runs.
func usageNow() wire.Usage {
	u := wire.Usage{Found: true}
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &r) == nil {
		u.Used = used2(&r)
	}
	if n := first(peakFiles); n > 0 {
		u.Used.MaxRSS = n
	}
	u.RSS = first(memoryFiles)
	return u
}

// first reads the first of some files that is there and holds a number.
func first(files []string) int64 {
	for _, path := range files {
		if b, err := os.ReadFile(path); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil {
				return n
			}
		}
	}
	return 0
}

// oomKills counts the processes that the kernel killed for want of memory.
func oomKills() int64 {
	for _, path := range eventFiles {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
				n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				return n
			}
		}
	}
	return 0
}
