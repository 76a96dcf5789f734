// Package procuse reads what the processes of a step use, by task.
package procuse

import (
	"bytes"
	"os"
	"strconv"

	"bireme.dev/bireme/internal/procstat"
	"bireme.dev/bireme/internal/wire"
)

// maxLooked bounds the processes of a step that are looked at one by one.
const maxLooked = 4096

// Tasks gives what each task of a step uses: the sum over its processes. roots are the first processes of the tasks,
// tasks their ranks where they have some. A process belongs to the task that it descends from; one whose parents have
// ended, to the first.
func Tasks(roots, pids []int, tasks []wire.Task) []wire.TaskUse {
	if len(roots) == 0 {
		return nil
	}
	out := make([]wire.TaskUse, len(roots))
	of := make(map[int]int, len(pids)) // the task of a process
	for i, pid := range roots {
		if out[i].Task = i; i < len(tasks) {
			out[i].Task = tasks[i].Rank
		}
		of[pid] = i
	}
	if len(pids) > maxLooked {
		pids = pids[:maxLooked]
	}
	seen := make(map[int]procUse, len(pids))
	for _, pid := range pids {
		if p, ok := readProcUse(pid); ok {
			seen[pid] = p
		}
	}
	var path []int
	for pid, p := range seen {
		task := 0
		path = path[:0]
		for at := pid; len(path) < len(seen); {
			if i, ok := of[at]; ok {
				task = i
				break
			}
			up, ok := seen[at]
			if !ok {
				break
			}
			path = append(path, at)
			at = up.parent
		}
		for _, above := range path { // a long line of parents is followed once
			of[above] = task
		}
		t := &out[task]
		t.CPU += p.cpu
		t.RSS += p.rss
		t.VM += p.vm
		t.Pages += p.faults
		t.Read += p.read
		t.Write += p.write
		t.MaxRSS, t.MaxVM = max(t.MaxRSS, p.maxRSS), max(t.MaxVM, p.maxVM)
	}
	for i := range out { // what all of them have now is less than the most they had
		out[i].MaxRSS, out[i].MaxVM = max(out[i].MaxRSS, out[i].RSS), max(out[i].MaxVM, out[i].VM)
	}
	return out
}

// procUse is what a process uses.
type procUse struct {
	parent                              int
	cpu, faults                         int64 // microseconds, with children it has waited for; major faults
	rss, vm, maxRSS, maxVM, read, write int64 // bytes
}

// microsPerTick: the kernel tells CPU time to processes in hundredths of a second.
const microsPerTick = 10_000

func readProcUse(pid int) (p procUse, ok bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	stat, ok := procstat.Read("/proc", pid)
	if !ok || stat.State() == 'X' || !stat.Has(24) {
		return p, false
	}
	n := stat.Number
	p.parent = int(n(4))
	p.faults = n(12) + n(13)
	p.cpu = (n(14) + n(15) + n(16) + n(17)) * microsPerTick
	p.vm, p.rss = n(23), n(24)*int64(os.Getpagesize())
	p.maxVM, p.maxRSS = p.vm, p.rss
	if b, err := os.ReadFile(dir + "/status"); err == nil {
		p.maxVM, p.maxRSS = max(p.vm, procField(b, "VmPeak:")*1024), max(p.rss, procField(b, "VmHWM:")*1024)
	}
	if b, err := os.ReadFile(dir + "/io"); err == nil {
		p.read, p.write = procField(b, "rchar:"), procField(b, "wchar:")
	}
	return p, true
}

// procField finds the number after a name at the beginning of a line.
func procField(text []byte, name string) int64 {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			word, _, _ := bytes.Cut(bytes.TrimSpace(rest), []byte(" "))
			n, _ := strconv.ParseInt(string(word), 10, 64)
			return n
		}
	}
	return 0
}
