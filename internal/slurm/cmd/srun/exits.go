package srun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/wire"
)

// exitOOM is what srun leaves with when a task was out of memory, as Slurm from 23.11 on.
const exitOOM = 253

// signalTexts are strsignal(3)'s of glibc.
var signalTexts = map[int32]string{
	1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap", 6: "Aborted",
	7: "Bus error",
	8: "Floating point exception", 9: "Killed", 10: "User defined signal 1", 11: "Segmentation fault",
	12: "User defined signal 2",
	13: "Broken pipe", 14: "Alarm clock", 15: "Terminated", 16: "Stack fault", 24: "CPU time limit exceeded",
	25: "File size limit exceeded",
	31: "Bad system call",
}

func statusText(e core.Exit) string {
	if e.Signal == 0 {
		return fmt.Sprintf("Exited with exit code %d", e.Code)
	}
	if t, ok := signalTexts[e.Signal]; ok {
		return t
	}
	return fmt.Sprintf("Signal %d", e.Signal)
}

// exits gathers how tasks ended and tells of those that did not end well: one line for all of a node that ended alike
// at the same moment.
type exits struct {
	w       *cmd.World
	step    string          // its name, where -v tells of every end
	waiting []wire.TaskExit // not told yet
	code    int32           // highest exit code
	signal  int32           // highest signal
	oom     bool
	ended   map[int32]bool
	bad     map[int32]bool // those that did not end well
	// byFirst is for a caller that stands for the step: the result is that of the first task that did not end well, and
	// not of those that were ended because of it.
	byFirst bool
	first   core.Exit
}

// statusVariable asks for the status of the first task that failed.
const statusVariable = "BIREME_STEP_STATUS"

func (x *exits) add(t wire.TaskExit) {
	if x.ended[t.Rank] { // an agent that was started since tells again
		return
	}
	x.ended[t.Rank] = true
	x.code = max(x.code, t.Exit.Code)
	x.signal = max(x.signal, t.Exit.Signal)
	if t.Exit.Code != 0 || t.Exit.Signal != 0 {
		if len(x.bad) == 0 {
			x.first = t.Exit
		}
		x.bad[t.Rank] = true
	}
	if x.bad[t.Rank] || x.step != "" {
		x.waiting = append(x.waiting, t)
	}
}

// tell prints what is waiting. With oom the tasks that were killed were out of memory.
func (x *exits) tell(oom bool) {
	type status struct {
		node core.NodeName
		text string
		exit core.Exit
	}
	groups := map[status][]int{}
	for _, t := range x.waiting {
		k := status{t.Node, statusText(t.Exit), t.Exit}
		if oom && t.Exit.Signal == 9 {
			k.text = "Out Of Memory"
		}
		groups[k] = append(groups[k], int(t.Rank))
	}
	keys := make([]status, 0, len(groups))
	for k := range groups {
		slices.Sort(groups[k])
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b status) int {
		return cmp.Or(hostlist.Compare(string(a.node), string(b.node)), cmp.Compare(groups[a][0], groups[b][0]))
	})
	for _, k := range keys {
		bad := k.exit != core.Exit{}
		if x.step != "" {
			word := "tasks"
			if len(groups[k]) == 1 {
				word = "task"
			}
			x.w.Infof("launch/slurm: _task_finish: Received task exit notification for %d %s of StepId=%s "+
				"(status=0x%04x).", len(groups[k]), word, x.step, k.exit.Code<<8|k.exit.Signal)
			if !bad {
				x.w.Infof("launch/slurm: _task_finish: %s: %s: Completed", k.node, taskNames(groups[k]))
			}
		}
		if bad {
			x.w.Errorf("%s: %s: %s", k.node, taskNames(groups[k]), k.text)
		}
	}
	x.waiting = nil
}

// taskNames writes "task 0" or "tasks 0,2-3".
func taskNames(ranks []int) string {
	if len(ranks) == 1 {
		return "task " + rankList(ranks)
	}
	return "tasks " + rankList(ranks)
}

// rankList writes ranks as 0,2-3.
func rankList(ranks []int) string {
	var words []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		if k == i {
			words = append(words, fmt.Sprint(ranks[i]))
		} else {
			words = append(words, fmt.Sprintf("%d-%d", ranks[i], ranks[k]))
		}
		i = k + 1
	}
	return strings.Join(words, ",")
}

// result is srun's exit code, and the exit that its allocation is given back with. A signal beats all exit codes.
func (x *exits) result() (int, core.Exit) {
	switch {
	case x.oom:
		return exitOOM, core.ExitOOM
	case x.byFirst && x.first.Signal != 0:
		return 128 + int(x.first.Signal), x.first
	case x.byFirst:
		return int(x.first.Code), x.first
	case x.signal != 0:
		return 128 + int(x.signal), core.Exit{Signal: x.signal}
	}
	return int(x.code), core.Exit{Code: x.code}
}
