package step

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/procstat"
	"bireme.dev/bireme/internal/step/clock"
	"bireme.dev/bireme/internal/wire"
)

// mark is the variable that every process of a launch has in its environment. Keepers of one machine may run steps of
// the same job, so it names the keeper, too.
func (k *Keeper) mark(key wire.Key) string {
	return "BIREME_LAUNCH=" + key.String() + "@" + treeName(k.cfg.Dir)
}

// markedProcs finds a step's processes among all of the machine: those with its mark in their environment, those in a
// session one of its tasks leads, and all their descendants. A process can shed all three; that is why this is called
// weak.
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

// family finds a step's processes by descent: from its tasks, and from what it left behind. Orphans come to the keeper,
// their subreaper, so every process of a job descends from a task or from a child the keeper did not fork. That spares
// a look at every process of the machine; ok is false where the kernel does not tell children.
func (k *Keeper) family(mark string, tasks []int) (list []int, ok bool) {
	own, ok := children(os.Getpid())
	if !ok {
		return nil, false
	}
	leads := map[int]bool{}
	for _, pid := range tasks {
		leads[pid] = true
	}
	var roots []int
	for _, pid := range own {
		k.mu.Lock()
		forked := k.reaper.children[pid] != nil
		k.mu.Unlock()
		if leads[pid] {
			roots = append(roots, pid)
		} else if _, session, alive := procStat(pid); !forked && alive &&
			(leads[session] || willHaveMark(pid, []byte(mark))) {
			roots = append(roots, pid)
		}
	}
	for len(roots) > 0 {
		pid := roots[len(roots)-1]
		roots = roots[:len(roots)-1]
		if _, _, alive := procStat(pid); alive {
			list = append(list, pid)
		}
		below, _ := children(pid)
		roots = append(roots, below...)
	}
	return list, true
}

// children lists the children of a process, those of all its threads.
func children(pid int) (list []int, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil, false
	}
	for _, t := range threads {
		b, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			if _, gone := os.Stat(dir + "/" + t.Name()); gone != nil {
				continue // the thread has ended
			}
			return nil, false
		}
		for f := range bytes.FieldsSeq(b) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				list = append(list, n)
			}
		}
	}
	return list, true
}

// procStat reads parent and session of a process; zombies are not alive.
func procStat(pid int) (parent, session int, alive bool) {
	s, ok := procstat.Read("/proc", pid)
	if !ok || s.Ended() || !s.Has(procstat.Session) {
		return 0, 0, false
	}
	return int(s.Number(procstat.Parent)), int(s.Number(procstat.Session)), true
}

// willHaveMark is hasMark for a process that may be in the middle of an exec, where its environment is not to be seen.
func willHaveMark(pid int, mark []byte) bool {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for until := clock.Now() + time.Second; executing(pid) && clock.Now() < until; {
		tick.Reset(time.Millisecond)
		<-tick.C
	}
	return hasMark(pid, mark)
}

// executing reports whether a process has left its old memory and not got its new one: its environment has no place.
func executing(pid int) bool {
	s, ok := procstat.Read("/proc", pid)
	return ok && !s.Ended() && s.Has(procstat.EnvStart) && s.Number(procstat.EnvStart) == 0
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
