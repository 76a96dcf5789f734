package step

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/wire"
)

// Without cgroups and root the keeper must do all of this, too.
func TestWithoutCgroups(t *testing.T) {
	t.Parallel()
	stories(t, "none")
}

// stories are what a keeper does, whatever holds its processes together.
func stories(t *testing.T, cgroup string) {
	for name, story := range map[string]func(*testing.T, *agent){
		"runs a script":                 runsScript,
		"tells exit codes and signals":  tellsExits,
		"runs a launch once":            runsOnce,
		"keeps an exit until ack":       keepsExit,
		"survives the agent":            survivesAgent,
		"a lost keeper's jobs die":      lostKeeper,
		"daemons die with their job":    killsDaemons,
		"time limit with warning":       timeLimit,
		"term then kill":                termThenKill,
		"changed limit":                 changedLimit,
		"suspended time does not count": suspends,
		"cancel":                        cancels,
		"warned before the end":         warnsFirst,
		"signals":                       signals,
		"bad output path":               badOutput,
		"no such directory":             badWorkDir,
		"cannot be executed":            badProgram,
		"output names and modes":        outputNames,
		"tasks of a step":               tasksOfStep,
		"streams":                       streamsStory,
		"terminal":                      terminalStory,
		"out of descriptors":            descriptorStory,
		"log by offset":                 logStory,
		"prolog and epilog":             hookStory,
		"task prolog and epilog":        taskHookStory,
		"finish":                        finishStory,
		"others wait for what has left": leftStory,
		"login environment":             loginStory,
		"limits of a process":           rlimitStory,
		"one keeper":                    oneKeeper,
		"upgrade":                       upgradeStory,
		"bounded log":                   boundedLogStory,
		"log given back":                freedLogStory,
		"log over an upgrade":           upgradedLogStory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, startKeeper(t, cgroup))
		})
	}
}

func runsScript(t *testing.T, a *agent) {
	l := a.batch(1, `echo "$0|$1|$A|$(pwd)|$BIREME_LAUNCH"; echo "$TMPDIR"; test -d "$TMPDIR" && touch "$TMPDIR/x"; `+
		`umask; echo oops >&2`)
	l.Program.Argv = []string{"arg one"}
	umask := uint32(0o027)
	l.Program.Umask = &umask
	l.TmpBase = filepath.Join(a.dir, "tmp")
	x, tail := a.run(l)
	if x.ExitCode != 0 || x.Cause != "" || !x.JobDone || !x.Started || x.Elapsed <= 0 {
		t.Fatalf("%+v", x)
	}
	tmp := filepath.Join(a.dir, "tmp", "bireme-1.0")
	want := fmt.Sprintf("%s|arg one|b c|%s|1.0.batch@%s\n%s\n0027\noops\n", filepath.Join(a.state(),
		"spool/job00001/slurm_script"), a.dir, treeName(a.state()), tmp)
	if got := a.read("out.txt"); got != want || tail != want {
		t.Errorf("got  %q\ntail %q\nwant %q", got, tail, want)
	}
	if st, err := os.Stat(filepath.Join(a.dir, "out.txt")); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("mode of output: %v %v", st.Mode(), err)
	}
	if _, err := os.Stat(tmp); !os.IsNotExist(err) {
		t.Errorf("temporary directory is left: %v", err)
	}
	if m := a.started(l.Key); m.PID <= 0 || m.Took <= 0 {
		t.Errorf("%+v", m)
	}
	if x.Usage.MaxRSS <= 0 {
		t.Errorf("no memory used: %+v", x.Usage)
	}
}

func tellsExits(t *testing.T, a *agent) {
	if x, _ := a.run(a.batch(1, "exit 7")); x.ExitCode != 7 || x.Signal != 0 || x.Cause != "" {
		t.Errorf("%+v", x)
	}
	if x, _ := a.run(a.batch(2, "kill -USR1 $$")); x.ExitCode != 0 || x.Signal != int(syscall.SIGUSR1) || x.Cause != "" {
		t.Errorf("%+v", x)
	}
	x, _ := a.run(a.batch(3, "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"))
	if x.Usage.UserCPU <= 0 {
		t.Errorf("no CPU time: %+v", x.Usage)
	}
}

func runsOnce(t *testing.T, a *agent) {
	l := a.batch(1, "echo ran >>ran; read x <fifo")
	fifo := filepath.Join(a.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a.launch(l)
	first := a.started(l.Key)
	a.launch(l)
	if again := a.started(l.Key); again.PID != first.PID {
		t.Errorf("second launch: %+v, first %+v", again, first)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	a.exited(l.Key)
	a.launch(l) // ended, not acknowledged: told again, with its output
	if x, _ := a.exited(l.Key); x.ExitCode != 0 {
		t.Errorf("%+v", x)
	}
	if got := a.read("ran"); got != "ran\n" {
		t.Errorf("ran %q", got)
	}
}

func keepsExit(t *testing.T, a *agent) {
	l := a.batch(1, "exit 3")
	a.run(l)
	a.conn.Close()
	a.connect()
	if len(a.hello.Ended) != 1 || a.hello.Ended[0].Key != l.Key || a.hello.Ended[0].ExitCode != 3 {
		t.Fatalf("after a reconnect: %+v", a.hello.Ended)
	}
	a.kill()
	a.start()
	if len(a.hello.Ended) != 1 || a.hello.Ended[0].ExitCode != 3 || a.hello.Ended[0].Cause != "" {
		t.Fatalf("after the keeper's death: %+v", a.hello.Ended)
	}
	a.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{l.Key}})
	a.send(wire.TypeList, wire.List{Ref: 9})
	var h wire.KeeperHello
	a.expect(wire.TypeKeeperHello, &h, func() bool { return h.Ref == 9 })
	if len(h.Ended) != 0 {
		t.Fatalf("after the acknowledgement: %+v", h.Ended)
	}
	a.kill()
	a.start()
	if len(a.hello.Ended) != 0 || len(a.hello.Running) != 0 {
		t.Fatalf("acknowledged, but told again: %+v", a.hello)
	}
}

func survivesAgent(t *testing.T, a *agent) {
	l := a.batch(1, "while [ ! -e go ]; do sleep 0.01; done; exit 4")
	a.launch(l)
	a.started(l.Key)
	a.conn.Close()
	a.connect()
	if len(a.hello.Running) != 1 || a.hello.Running[0].Key != l.Key || a.hello.Running[0].PID == 0 {
		t.Fatalf("running: %+v", a.hello.Running)
	}
	old := a.conn
	a.connect() // replaces the connection before
	if _, err := old.Next(); err == nil {
		t.Error("the old connection still speaks")
	}
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if x, _ := a.exited(l.Key); x.ExitCode != 4 {
		t.Errorf("%+v", x)
	}
}

func lostKeeper(t *testing.T, a *agent) {
	l := a.batch(1, "sleep 1000 & echo $! >pid; setsid sleep 1000 & echo $! >>pid; touch ready; wait")
	l.TmpBase = a.dir
	l.Hooks = wire.Hooks{Epilog: [][]string{{"/bin/sh", "-c", "echo epilog >" + a.dir + "/epilog"}}}
	a.launch(l)
	pid := a.started(l.Key).PID
	a.until("the script is ready", func() bool { _, err := os.Stat(filepath.Join(a.dir, "ready")); return err == nil })
	pids := []int{pid}
	for f := range strings.FieldsSeq(a.read("pid")) {
		n, _ := strconv.Atoi(f)
		pids = append(pids, n)
	}
	if len(pids) != 3 {
		t.Fatalf("pids %v", pids)
	}
	a.kill()
	if !a.alive(pids[1]) {
		t.Fatal("a dead keeper takes nobody along")
	}
	a.start()
	if len(a.hello.Ended) != 1 || a.hello.Ended[0].Cause != wire.CauseKeeperLost || a.hello.Ended[0].Elapsed <= 0 {
		t.Fatalf("%+v", a.hello.Ended)
	}
	a.until("processes are gone", func() bool { return !alive(pids[0]) && !a.alive(pids[1]) && !a.alive(pids[2]) })
	if _, err := os.Stat(filepath.Join(a.dir, "bireme-1.0")); !os.IsNotExist(err) {
		t.Errorf("temporary directory is left: %v", err)
	}
	if a.read("epilog") != "epilog\n" {
		t.Error("no epilog")
	}
	a.launch(l) // known, so not run again
	if x, _ := a.exited(l.Key); x.Cause != wire.CauseKeeperLost {
		t.Errorf("%+v", x)
	}
}

func killsDaemons(t *testing.T, a *agent) {
	l := a.batch(1, `(setsid sh -c 'trap "" TERM HUP; echo $$ >daemon; exec sleep 1000' &) ; while [ ! -s daemon ]; `+
		`do sleep 0.01; done`)
	x, _ := a.run(l)
	if x.ExitCode != 0 || x.Cause != "" || !x.JobDone {
		t.Errorf("%+v", x)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(a.read("daemon")))
	if err != nil {
		t.Fatal(err)
	}
	if a.alive(pid) {
		t.Errorf("daemon %d outlived its job", pid)
	}
}

func timeLimit(t *testing.T, a *agent) {
	l := a.batch(1, "trap 'echo warned' USR1; trap 'echo termed; exit 0' TERM; touch ready; while :; do sleep 0.01; done")
	l.Time = wire.Timing{
		Limit: 600 * time.Millisecond, WarnSignal: int(syscall.SIGUSR1), WarnBefore: 300 * time.Millisecond, WarnBatch: true,
		KillGrace: 10 * time.Second,
	}
	x, out := a.run(l)
	if x.Cause != wire.CauseTimeout || x.ExitCode != 0 || x.Elapsed < l.Time.Limit {
		t.Errorf("%+v", x)
	}
	contains(t, out, "warned\n")
	contains(t, out, "termed\n")
	contains(t, out, "keeper: error: *** JOB 1 ON n1 CANCELLED AT 2")
	contains(t, out, " DUE TO TIME LIMIT ***\n")
	if strings.Index(out, "warned") > strings.Index(out, "CANCELLED") {
		t.Errorf("warned too late: %q", out)
	}
}

func termThenKill(t *testing.T, a *agent) {
	l := a.batch(1, "trap '' TERM; sleep 1000 & while :; do sleep 0.01; done")
	l.Time.Limit = 100 * time.Millisecond
	x, _ := a.run(l)
	if x.Cause != wire.CauseTimeout || x.Signal != int(syscall.SIGKILL) || x.Elapsed < l.Time.Limit+l.Time.KillGrace {
		t.Errorf("%+v", x)
	}
}

func changedLimit(t *testing.T, a *agent) {
	l := a.batch(1, "sleep 1000")
	l.Time.Limit = time.Hour
	a.launch(l)
	a.started(l.Key)
	own := map[string]time.Duration{wire.BatchStep: time.Millisecond, "0": time.Hour} // others keep the job's
	if r := a.ask(wire.TypeSetLimit, wire.SetLimit{Ref: 1, Job: 1, Limit: time.Hour, Steps: own}, 1); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	if x, _ := a.exited(l.Key); x.Cause != wire.CauseTimeout || x.Signal != int(syscall.SIGTERM) {
		t.Errorf("%+v", x)
	}
	if r := a.ask(wire.TypeSetLimit, wire.SetLimit{Ref: 2, Job: 77}, 2); r.Code != string(core.NotFound) {
		t.Errorf("%+v", r)
	}
}

func suspends(t *testing.T, a *agent) {
	l := a.batch(1, "while :; do echo x; sleep 0.01; done")
	l.Time.Limit = 700 * time.Millisecond
	a.launch(l)
	a.started(l.Key)
	if r := a.ask(wire.TypeSuspend, wire.Suspend{Ref: 1, Job: 1}, 1); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	size := func() int64 {
		st, err := os.Stat(filepath.Join(a.dir, "out.txt"))
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	// Frozen: the output stands still for longer than the limit.
	before, since := size(), time.Now()
	a.until("the limit would have passed", func() bool { return time.Since(since) > l.Time.Limit })
	if after := size(); after > before+2 { // a write may have been on its way
		t.Errorf("a suspended job wrote %d bytes", after-before)
	}
	if r := a.ask(wire.TypeSuspend, wire.Suspend{Ref: 2, Job: 1, Resume: true}, 2); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	x, _ := a.exited(l.Key)
	if x.Cause != wire.CauseTimeout || x.Suspended < l.Time.Limit || x.Elapsed-x.Suspended < l.Time.Limit {
		t.Errorf("%+v", x)
	}
}

func cancels(t *testing.T, a *agent) {
	l := a.batch(1, "sleep 1000")
	a.launch(l)
	a.started(l.Key)
	if r := a.ask(wire.TypeKill, wire.Kill{Ref: 1, Job: 1, Reason: "cancelled by ann"}, 1); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	x, out := a.exited(l.Key)
	if x.Cause != wire.CauseCancelled || x.Signal != int(syscall.SIGTERM) || x.Message != "cancelled by ann" {
		t.Errorf("%+v", x)
	}
	contains(t, out, "*** JOB 1 ON n1 CANCELLED AT ")
	if r := a.ask(wire.TypeKill, wire.Kill{Ref: 2, Job: 1}, 2); r.Code != string(core.NotFound) {
		t.Errorf("%+v", r)
	}
}

// warnsFirst: who is to save its work gets the signal for that, and is told to end when little of the grace is left.
func warnsFirst(t *testing.T, a *agent) {
	l := a.batch(1, "trap 'echo saved' USR1; trap 'echo termed; exit 0' TERM; touch ready; while :; do sleep 0.01; done")
	l.Time = wire.Timing{
		Limit: time.Hour, WarnSignal: int(syscall.SIGUSR1), WarnBefore: time.Second, WarnAll: true,
		KillGrace: 8 * time.Second,
	}
	a.launch(l)
	a.started(l.Key)
	a.until("the traps are set", func() bool { _, err := os.Stat(filepath.Join(a.dir, "ready")); return err == nil })
	begun := time.Now()
	a.ask(wire.TypeKill, wire.Kill{Ref: 1, Job: 1, Notice: "DUE TO PREEMPTION", Warn: true}, 1)
	x, out := a.exited(l.Key)
	if x.Cause != wire.CauseCancelled || x.ExitCode != 0 || time.Since(begun) < l.Time.KillGrace/2 {
		t.Errorf("%+v after %s", x, time.Since(begun))
	}
	if !strings.Contains(out, "saved\n") || strings.Index(out, "saved\n") > strings.Index(out, "termed\n") {
		t.Errorf("%q", out)
	}
}

func signals(t *testing.T, a *agent) {
	l := a.batch(1, `trap 'echo shell; exit 5' USR1; (trap 'echo child' USR1; touch ready; while :; do sleep 0.01; `+
		`done) & while :; do sleep 0.01; done`)
	a.launch(l)
	a.started(l.Key)
	a.until("the script is ready", func() bool { _, err := os.Stat(filepath.Join(a.dir, "ready")); return err == nil })
	if r := a.ask(wire.TypeSignal, wire.Signal{Ref: 1, Job: 1, Number: int(syscall.SIGUSR1)}, 1); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	if r := a.ask(wire.TypeSignal, wire.Signal{Ref: 2, Job: 1, Number: 99}, 2); r.Code != string(core.Invalid) {
		t.Fatalf("%+v", r)
	}
	if got := a.read("out.txt"); got != "" {
		t.Errorf("without a flag the batch step got it: %q", got)
	}
	if r := a.ask(wire.TypeSignal, wire.Signal{Ref: 3, Job: 1, Number: int(syscall.SIGUSR1), Batch: true},
		3); r.Code != "" {
		t.Fatalf("%+v", r)
	}
	x, out := a.exited(l.Key)
	if x.ExitCode != 5 || x.Cause != "" {
		t.Errorf("%+v", x)
	}
	if strings.Contains(out, "child") || !strings.Contains(out, "shell") {
		t.Errorf("got %q", out)
	}
}

func badOutput(t *testing.T, a *agent) {
	if err := os.WriteFile(filepath.Join(a.dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	l := a.batch(1, "touch ran")
	l.Stdio.Stdout = "file/out.txt"
	x, _ := a.run(l)
	if x.Cause != wire.CauseLaunchFailed || x.Signal != wire.LaunchFailedSignal || x.Started || !x.JobDone {
		t.Errorf("%+v", x)
	}
	if want := filepath.Join(a.dir, "file/out.txt") + ": not a directory"; x.Message != want {
		t.Errorf("got %q, want %q", x.Message, want)
	}
	l = a.batch(3, "echo made")
	l.Stdio.Stdout = "no/where/out.txt" // [output-folder]
	if x, _ = a.run(l); x.ExitCode != 0 || a.read("no/where/out.txt") != "made\n" {
		t.Errorf("a missing folder of output: %+v", x)
	}
	l = a.batch(2, "touch ran")
	l.Stdio.Stdin = "missing"
	x, _ = a.run(l)
	if want := filepath.Join(a.dir, "missing") + ": no such file or directory"; x.Message != want {
		t.Errorf("got %q, want %q", x.Message, want)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "ran")); err == nil {
		t.Error("it ran all the same")
	}
}

func badWorkDir(t *testing.T, a *agent) {
	l := a.batch(1, "pwd")
	l.Program.WorkDir = "/nowhere/at/all"
	l.Stdio.Stdout = filepath.Join(a.dir, "out.txt")
	_, out := a.run(l)
	if want := "keeper: error: couldn't chdir to `/nowhere/at/all': No such file or directory: going to /tmp " +
		"instead\n/tmp\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func badProgram(t *testing.T, a *agent) {
	l := a.batch(1, "")
	l.Script = []byte("#!/no/such/shell\n")
	x, out := a.run(l)
	if x.Cause != wire.CauseExecFailed || x.ExitCode != int(syscall.ENOENT) || x.Started {
		t.Errorf("%+v", x)
	}
	contains(t, x.Message, ": no such file or directory")
	contains(t, out, ": No such file or directory\n")
	l = a.batch(2, "")
	l.Script, l.Program.Argv = nil, []string{"nosuchcommand"}
	if x, out = a.run(l); x.ExitCode != int(syscall.ENOENT) ||
		out != "keeper: error: execve(): nosuchcommand: No such file or directory\n" {
		t.Errorf("%+v %q", x, out)
	}
	l = a.batch(3, "")
	l.Script, l.Program.Argv = nil, []string{"/etc/passwd"}
	if x, _ = a.run(l); x.Cause != wire.CauseExecFailed || x.ExitCode != int(syscall.EACCES) {
		t.Errorf("%+v", x)
	}
	l = a.batch(4, "")
	l.Script = nil
	if x, _ = a.run(l); x.Cause != wire.CauseLaunchFailed {
		t.Errorf("%+v", x)
	}
}

func outputNames(t *testing.T, a *agent) {
	l := a.batch(12, "echo out; echo err >&2")
	l.Stdio.Stdout, l.Stdio.Stderr = "new/dir/%x-%4j-%N.out", "%u.%t.err"
	if err := os.MkdirAll(filepath.Join(a.dir, "new/dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	l.Stdio.Names = filename.Names{Job: 12, Step: "batch", Node: "n1", User: "ann", JobName: "name"}
	a.run(l)
	if a.read("new/dir/name-0012-n1.out") != "out\n" || a.read("ann.0.err") != "err\n" {
		t.Error("output in the wrong place")
	}
	l.Key.Job = 13
	l.Stdio.Append = true
	x, tail := a.run(l)
	if a.read("new/dir/name-0012-n1.out") != "out\nout\n" || tail != "out\n" || x.LogFrom != 4 || x.LogSize != 8 {
		t.Errorf("appended: %+v, tail %q", x, tail)
	}
	l.Key.Job = 14
	l.Stdio.Append = false
	a.run(l)
	if a.read("new/dir/name-0012-n1.out") != "out\n" {
		t.Error("not truncated")
	}
	l = a.batch(15, "cat; printf 12345678")
	l.Stdio.Stdin = "in"
	l.Stdio.KeepTail = 5
	if err := os.WriteFile(filepath.Join(a.dir, "in"), []byte("input\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if x, tail := a.run(l); tail != "45678" || x.LogSize != 14 || a.read("out.txt") != "input\n12345678" {
		t.Errorf("%+v, tail %q", x, tail)
	}
}

func tasksOfStep(t *testing.T, a *agent) {
	l := a.batch(1, "")
	l.Key.Step = "0"
	l.Script = nil
	l.Program.Argv = []string{"sh", "-c", "echo $RANK; exit $RANK"}
	l.Stdio.Stdout = "task.%t"
	for i := range 3 {
		l.Program.Tasks = append(l.Program.Tasks, wire.Task{Rank: i, Env: []string{fmt.Sprint("RANK=", i)}})
	}
	a.launch(l)
	if m := a.started(l.Key); len(m.PIDs) != 3 {
		t.Errorf("%+v", m)
	}
	codes := map[int]int{}
	for range 3 {
		var m wire.TaskExited
		a.expect(wire.TypeTaskExited, &m, nil)
		codes[m.Task] = m.ExitCode
	}
	if x, _ := a.exited(l.Key); x.ExitCode != 2 {
		t.Errorf("%+v", x)
	}
	for i := range 3 {
		if got := a.read(fmt.Sprint("task.", i)); got != fmt.Sprint(i, "\n") || codes[i] != i {
			t.Errorf("task %d wrote %q, exit code %d", i, got, codes[i])
		}
	}
}
