package trigger

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// What a program of somebody but root may take of the server's host.
const (
	maxOwnRunning = 4       // of the programs that run at once
	maxData       = 1 << 20 // KiB of memory that a process writes to
	maxTasks      = 64      // processes and threads beside those that the user has
)

// gate is a shell that gives up what the program of its arguments shall not have, and becomes it. When the host has no
// memory left, that of the program is taken back first. Shells have two names for the limit on processes.
const gate = `ulimit -c 0
ulimit -d "$1"
if (ulimit -u "$2") 2>/dev/null; then ulimit -u "$2"; else ulimit -p "$2"; fi
echo 1000 >/proc/self/oom_score_adj
shift 2
exec "$@"`

// bounded is a program as that of a user, with less of the host than the server has.
func bounded(uid uint32, argv []string) []string {
	if uid == 0 {
		return argv
	}
	tasks := strconv.FormatUint(tasksOf(uid)+maxTasks, 10)
	return append([]string{"/bin/sh", "-c", gate, "trigger", strconv.Itoa(maxData), tasks}, argv...)
}

// tasksOf counts the processes and threads of a user on this host.
func tasksOf(uid uint32) (n uint64) {
	list, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		return 0
	}
	for _, task := range list {
		if info, err := os.Stat(task); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == uid {
				n++
			}
		}
	}
	return n
}
