package step

import (
	"bytes"
	"os"
	"strconv"

	"bireme.dev/bireme/internal/wire"
)

// mark is the variable that every process of a launch has in its environment. Keepers of one machine may run steps of the same
// job, so it names the keeper, too.
func (k *Keeper) mark(key wire.Key) string {
	return "BIREME_LAUNCH=" + key.String() + "@" + treeName(k.cfg.Dir)
}

// markedProcs finds a step's processes where no cgroup holds them: those with its mark in their environment, those in a
// session one of its tasks leads, and all their descendants. A process can shed all three; that is why this is called weak.
func markedProcs(mark string, tasks []int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	leads := map[int]bool{}
	for _, pid := range tasks {
		leads[pid] = true
	}
	parents := map[int]int{}
	found := map[int]bool{}
	self := os.Getpid()
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == self {
			continue
		}
		parent, session, alive := procStat(pid)
		if !alive {
			continue
		}
		parents[pid] = parent
		if leads[pid] || leads[session] || hasMark(pid, []byte(mark)) {
			found[pid] = true
		}
	}
	for again := true; again; {
		again = false
		for pid, parent := range parents {
			if found[parent] && !found[pid] {
				found[pid], again = true, true
			}
		}
	}
	list := make([]int, 0, len(found))
	for pid := range found {
		list = append(list, pid)
	}
	return list
}

// adopted tells whether the keeper has children it did not fork: what a job left behind comes to its subreaper. When it has
// none, no ended step has processes, and nobody needs to look through /proc.
func (r *reaper) adopted() bool {
	self := "/proc/" + strconv.Itoa(os.Getpid()) + "/task"
	threads, err := os.ReadDir(self)
	if err != nil {
		return true
	}
	for _, t := range threads {
		b, err := os.ReadFile(self + "/" + t.Name() + "/children")
		if err != nil {
			return true // a kernel without this file: look
		}
		for f := range bytes.FieldsSeq(b) {
			pid, _ := strconv.Atoi(string(f))
			r.mu.Lock()
			known := r.children[pid] != nil
			r.mu.Unlock()
			if !known {
				return true
			}
		}
	}
	return false
}

// procStat reads parent and session of a process; zombies are not alive.
func procStat(pid int) (parent, session int, alive bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, 0, false
	}
	// The name in parentheses may contain anything, so fields are counted from the last one.
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 4 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return 0, 0, false
	}
	parent, _ = strconv.Atoi(string(f[1]))
	session, _ = strconv.Atoi(string(f[3]))
	return parent, session, true
}

func hasMark(pid int, mark []byte) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.Equal(v, mark) {
			return true
		}
	}
	return false
}
