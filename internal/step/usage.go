package step

import (
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/wire"
)

// addCgroup completes what waiting for the tasks told with what the cgroup counted: it has seen all descendants.
func addCgroup(u *wire.Used, c cgroup.Usage) {
	u.UserCPU = max(u.UserCPU, c.UserCPU)
	u.SysCPU = max(u.SysCPU, c.SysCPU)
	if c.Peak <= 0 {
		return
	}
	// The cgroup's peak counts page cache: a job that wrote a large file is not a large job. What is still charged once
	// all processes are gone is cache, so the difference is what they held. The largest single process bounds it from
	// below; its figure begins with the size of the keeper it was forked from, so it is never believed beyond the peak.
	u.MaxRSS = max(c.Peak-c.Now, min(u.MaxRSS, c.Peak))
}
