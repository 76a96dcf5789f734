package step

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// collect gathers a stream until its end, acknowledging as a reader does.
func (a *agent) collect(key wire.Key, fd int) string {
	a.t.Helper()
	var got []byte
	for {
		var d wire.Data
		f := a.expect(wire.TypeData, &d, func() bool { return d.Key == key && d.FD == fd || reset(&d) })
		if skip := int64(len(got)) - d.Offset; skip >= 0 && skip <= int64(len(f.Payload)) {
			got = append(got, f.Payload[skip:]...)
		} else if skip < 0 {
			a.t.Fatalf("gap of %d bytes", -skip)
		}
		a.send(wire.TypeDataAck, wire.DataAck{Key: key, FD: fd, Offset: int64(len(got))})
		if d.EOF {
			return string(got)
		}
	}
}

func streamsStory(t *testing.T, a *agent) {
	l := a.batch(1, "cat; head -c 1000000 /dev/zero | tr '\\0' x; echo err >&2; exit 3")
	l.Key.Step = "0"
	l.Stdio = wire.Stdio{Mode: wire.StdioStream}
	l.Program.Tasks = []wire.Task{{}}
	a.launch(l)
	a.started(l.Key)
	a.send(wire.TypeData, wire.Data{Key: l.Key, Task: -1, FD: 0}, []byte("input\n"))
	// The connection breaks; the output so far comes again.
	a.conn.Close()
	a.connect()
	a.send(wire.TypeData, wire.Data{Key: l.Key, Task: -1, FD: 0}, []byte("input\nmore\n"))
	a.send(wire.TypeData, wire.Data{Key: l.Key, Task: -1, FD: 0, Offset: 11, EOF: true})
	if got := a.collect(l.Key, 1); got != "input\nmore\n"+strings.Repeat("x", 1000000) {
		t.Errorf("%d bytes: %.20q…", len(got), got)
	}
	if got := a.collect(l.Key, 2); got != "err\n" {
		t.Errorf("got %q", got)
	}
	if x, _ := a.exited(l.Key); x.ExitCode != 3 {
		t.Errorf("%+v", x)
	}
	// What is typed before the step runs is not lost, however long its start takes.
	early := a.batch(2, "cat")
	early.Key.Step, early.Stdio, early.Program.Tasks = "0", l.Stdio, l.Program.Tasks
	early.Hooks.Prolog = [][]string{{"/bin/sh", "-c", "while [ ! -e " + a.dir + "/typed ]; do sleep 0.01; done"}}
	a.launch(early)
	a.send(wire.TypeData, wire.Data{Key: early.Key, Task: -1, FD: 0}, []byte("be"))
	a.send(wire.TypeData, wire.Data{Key: early.Key, Task: -1, FD: 0, Offset: 2}, []byte("fore\n"))
	a.send(wire.TypeData, wire.Data{Key: early.Key, Task: -1, FD: 0, Offset: 7, EOF: true})
	a.send(wire.TypeList, wire.List{Ref: 77}) // answered once all that has been read
	var h wire.KeeperHello
	a.expect(wire.TypeKeeperHello, &h, func() bool { return h.Ref == 77 })
	if err := os.WriteFile(filepath.Join(a.dir, "typed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := a.collect(early.Key, 1); got != "before\n" {
		t.Errorf("got %q", got)
	}
	if got := a.collect(early.Key, 2); got != "" {
		t.Errorf("got %q", got)
	}
	a.exited(early.Key)
	a.finish(2)
	// Nobody reads: the step waits, and ends when its streams are dropped.
	l.Key.Step = "1"
	a.launch(l)
	a.started(l.Key)
	a.send(wire.TypeData, wire.Data{Key: l.Key, Task: -1, FD: 0, EOF: true})
	a.send(wire.TypeStreamDrop, wire.StreamDrop{Key: l.Key})
	if x, _ := a.exited(l.Key); x.ExitCode != 3 {
		t.Errorf("%+v", x)
	}
	a.finish(1)
}

func (a *agent) finish(job int64) wire.JobDone {
	a.t.Helper()
	a.ref++
	a.send(wire.TypeFinish, wire.Finish{Ref: a.ref, Job: core.JobID(job)})
	var m wire.JobDone
	a.expect(wire.TypeJobDone, &m, func() bool { return m.Ref == a.ref })
	return m
}

func terminalStory(t *testing.T, a *agent) {
	l := a.batch(1, "tty >/dev/null && stty size; read x; echo got $x")
	l.Key.Step = "0"
	l.Stdio = wire.Stdio{Mode: wire.StdioStream, PTY: true, Rows: 33, Cols: 77}
	a.launch(l)
	a.started(l.Key)
	a.send(wire.TypeData, wire.Data{Key: l.Key, FD: 0}, []byte("typed\n"))
	got := a.collect(l.Key, 1)
	contains(t, got, "33 77")
	contains(t, got, "got typed")
	if x, _ := a.exited(l.Key); x.ExitCode != 0 {
		t.Errorf("%+v", x)
	}
}

func (a *agent) readLog(m wire.ReadLog) (wire.Log, string) {
	a.t.Helper()
	a.ref++
	m.Ref = a.ref
	a.send(wire.TypeReadLog, m)
	var r wire.Log
	f := a.expect(wire.TypeLog, &r, func() bool { return r.Ref == a.ref || reset(&r) })
	return r, string(f.Payload)
}

func logStory(t *testing.T, a *agent) {
	l := a.batch(1, "echo one; while [ ! -e go ]; do sleep 0.01; done; echo two >&2")
	l.Stdio = wire.Stdio{Mode: wire.StdioLog}
	a.launch(l)
	a.started(l.Key)
	if r, b := a.readLog(wire.ReadLog{Key: l.Key, Wait: 10 * time.Second}); b != "one\n" || r.Ended {
		t.Errorf("%+v %q", r, b)
	}
	if r, b := a.readLog(wire.ReadLog{Key: l.Key, Offset: 4, Wait: time.Millisecond}); b != "" || r.Ended || r.Size != 4 {
		t.Errorf("%+v %q", r, b)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r, b := a.readLog(wire.ReadLog{Key: l.Key, Offset: 4, Wait: 10 * time.Second}); b != "two\n" {
		t.Errorf("%+v %q", r, b)
	}
	if x, b := a.exited(l.Key); x.LogSize != 8 || b != "one\ntwo\n" {
		t.Errorf("%+v %q", x, b)
	}
	a.kill() // the log survives as the exit does
	a.start()
	if r, b := a.readLog(wire.ReadLog{Key: l.Key, Offset: 4}); b != "two\n" || !r.Ended {
		t.Errorf("%+v %q", r, b)
	}
	a.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{l.Key}})
	a.until("the log is gone", func() bool {
		left, _ := os.ReadDir(filepath.Join(a.state(), "logs"))
		return len(left) == 0
	})
	if r, _ := a.readLog(wire.ReadLog{Key: l.Key}); r.Error == "" || !r.Ended {
		t.Errorf("%+v", r)
	}
}

func hookStory(t *testing.T, a *agent) {
	l := a.batch(1, "cat hooks")
	say := func(what string) []string {
		return []string{"/bin/sh", "-c", "echo " + what + " $SLURM_JOB_ID >>" + a.dir + "/hooks"}
	}
	l.Hooks = wire.Hooks{Prolog: [][]string{say("prolog")}, Epilog: [][]string{say("epilog")}, Env: []string{
		// what no program can be given
		"SLURM_JOB_ID=1", "SLURM_JOB_NAME=a\x00b", "SLURM_JOB_COMMENT=" + strings.Repeat("x", 1<<20),
	}}
	if _, out := a.run(l); out != "prolog 1\n" || a.read("hooks") != "prolog 1\nepilog 1\n" {
		t.Errorf("job saw %q, hooks %q", out, a.read("hooks"))
	}
	l = a.batch(4, "exit 3")
	l.Hooks = wire.Hooks{Epilog: [][]string{
		{"/bin/sh", "-c", "echo $SLURM_SCRIPT_CONTEXT $SLURM_JOB_EXIT_CODE $SLURM_JOB_EXIT_CODE2 " +
			"$SLURM_JOB_DERIVED_EC >" + a.dir + "/ended"},
	}}
	if a.run(l); a.read("ended") != "epilog_slurmd 768 3:0 0\n" {
		t.Errorf("the epilog was told %q", a.read("ended"))
	}
	l = a.batch(2, "touch ran")
	l.Hooks = wire.Hooks{Prolog: [][]string{{"/bin/sh", "-c", "echo disk is gone; exit 3"}}}
	x, _ := a.run(l)
	if x.Cause != wire.CausePrologFailed || x.Message != "prolog /bin/sh: exit code 3: disk is gone" || x.Started {
		t.Errorf("%+v", x)
	}
	l = a.batch(3, "true")
	l.Hooks = wire.Hooks{Epilog: [][]string{{"/bin/sh", "-c", "sleep 1000"}}, Timeout: 50 * time.Millisecond}
	x, _ = a.run(l)
	if x.Cause != "" || !x.JobDone || x.EpilogFailed != "epilog /bin/sh: killed after 50ms" {
		t.Errorf("%+v", x)
	}
}

func finishStory(t *testing.T, a *agent) {
	l := a.batch(1, "sleep 1000")
	l.EndsJob = false
	l.TmpBase = a.dir
	a.launch(l)
	a.started(l.Key)
	other := a.batch(1, "exit 2")
	other.Key.Step = "0"
	other.EndsJob = false
	if x, _ := a.run(other); x.ExitCode != 2 || x.JobDone {
		t.Errorf("%+v", x)
	}
	if done := a.finish(1); done.Unkillable != "" || done.EpilogFailed != "" {
		t.Errorf("%+v", done)
	}
	if x, _ := a.exited(l.Key); x.Signal != int(syscall.SIGTERM) || x.Cause != wire.CauseCancelled {
		t.Errorf("%+v", x)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "bireme-1.0")); !os.IsNotExist(err) {
		t.Errorf("temporary directory is left: %v", err)
	}
	if done := a.finish(1); done.Unkillable != "" { // again: nothing to do, still answered
		t.Errorf("%+v", done)
	}
}

func loginStory(t *testing.T, a *agent) {
	home := filepath.Join(a.dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	profile := "echo noise; FROM_PROFILE='two\nlines'; A=login; export FROM_PROFILE A\n"
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	l := a.batch(1, `echo "$HOME|$FROM_PROFILE|$A"`)
	l.Identity.Home, l.Identity.Shell, l.Identity.Name = home, "/bin/sh", "ann"
	l.Program.LoginEnv = true
	if _, out := a.run(l); out != home+"|two\nlines|b c\n" {
		t.Errorf("got %q", out)
	}
	// Without a word about the shell it is that of the node's passwd.
	want := "/bin/sh"
	if u, err := account.ByUID(uint32(os.Getuid())); err == nil && u.Shell != "" &&
		!strings.HasSuffix(u.Shell, "/nologin") && !strings.HasSuffix(u.Shell, "/false") {
		want = u.Shell
	}
	l = a.batch(4, `echo "$SHELL|$FROM_PROFILE"`)
	l.Identity.Home, l.Program.LoginEnv = home, true
	if x, out := a.run(l); !strings.HasPrefix(out, want+"|") {
		t.Errorf("got %q, want %s, %+v", out, want, x)
	}
	l = a.batch(2, "true")
	l.Identity.Shell = "/no/such/shell"
	l.Program.LoginEnv = true
	if x, _ := a.run(l); x.Cause != wire.CauseEnvFailed {
		t.Errorf("%+v", x)
	}
	l = a.batch(3, "true")
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte("sleep 1000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	l.Identity.Home, l.Program.LoginEnv, l.Program.LoginEnvTimeout = home, true, 50*time.Millisecond
	if x, _ := a.run(l); x.Cause != wire.CauseEnvFailed || !strings.Contains(x.Message, "killed after 50ms") {
		t.Errorf("%+v", x)
	}
}

func rlimitStory(t *testing.T, a *agent) {
	l := a.batch(1, "ulimit -n; ulimit -c; nice")
	l.Limits.RLimits = map[string]wire.RLimit{"nofile": {Soft: 77, Hard: 88}, "core": {Soft: 0, Hard: 0}, "unknown": {}}
	l.Program.Nice = 3
	l.Program.Tasks = []wire.Task{{CPUs: "0"}}
	x, out := a.run(l)
	if out != "77\n0\n3\n" || x.ExitCode != 0 {
		t.Errorf("got %q, %+v", out, x)
	}
}

func oneKeeper(t *testing.T, a *agent) {
	second := exec.Command("/proc/self/exe")
	second.Env = append(os.Environ(), "STEP_TEST_KEEPER="+a.state(), "STEP_TEST_CGROUP="+a.cgroup)
	var say bytes.Buffer
	second.Stderr = &say
	if err := second.Run(); err == nil {
		t.Error("a second keeper started in the same directory")
	}
	contains(t, say.String(), "another keeper holds")
	if x, _ := a.run(a.batch(1, "exit 2")); x.ExitCode != 2 {
		t.Errorf("%+v", x)
	}
	// Shutdown by message kills and cleans.
	l := a.batch(2, "sleep 1000")
	a.launch(l)
	pid := a.started(l.Key).PID
	a.send(wire.TypeShutdown, nil)
	if x, _ := a.exited(l.Key); x.Signal != int(unix.SIGKILL) {
		t.Errorf("%+v", x)
	}
	if err := a.cmd.Wait(); err != nil {
		t.Error(err)
	}
	a.cmd = nil
	if alive(pid) {
		t.Error("job outlived its keeper's shutdown")
	}
}

func upgradeStory(t *testing.T, a *agent) {
	ended := a.batch(1, "echo ended; exit 6")
	a.run(ended)
	l := a.batch(2, `sleep 1000 & echo $! >child; echo one; while [ ! -e go ]; do sleep 0.01; done; echo two; exit 9`)
	l.TmpBase, l.Time.Limit, l.Stdio.Stdout = a.dir, time.Hour, "out2.txt"
	a.launch(l)
	pid := a.started(l.Key).PID
	late := a.batch(3, "sleep 1000")
	late.Time.Limit, late.Stdio.Stdout = 1500*time.Millisecond, "out3.txt"
	a.launch(late)
	a.started(late.Key)
	a.until("the script runs", func() bool {
		b, _ := os.ReadFile(filepath.Join(a.dir, "out2.txt"))
		return string(b) == "one\n"
	})
	if r := a.ask(wire.TypeUpgrade, wire.Upgrade{Ref: 1, Path: "/no/such/program"}, 1); r.Code != "invalid" {
		t.Errorf("%+v", r)
	}
	before := a.hello
	a.send(wire.TypeUpgrade, wire.Upgrade{})
	for {
		if _, err := a.conn.Next(); err != nil {
			break // the old program is gone
		}
	}
	a.connect()
	if h := a.hello; h.PID != before.PID || h.Instance != before.Instance || h.Containment != before.Containment {
		t.Errorf("%+v, before %+v", h, before)
	}
	if h := a.hello; len(h.Ended) != 1 || h.Ended[0].ExitCode != 6 || len(h.Running) != 2 {
		t.Fatalf("%+v", h)
	}
	a.launch(l)
	if m := a.started(l.Key); m.PID != pid {
		t.Errorf("%+v, before %d", m, pid)
	}
	if r, b := a.readLog(wire.ReadLog{Key: ended.Key}); b != "ended\n" || !r.Ended {
		t.Errorf("%+v %q", r, b)
	}
	if x, out := a.exited(late.Key); x.Cause != wire.CauseTimeout || !strings.Contains(out, "TIME LIMIT") {
		t.Errorf("%+v %q", x, out)
	}
	if x, _ := a.run(a.batch(4, "exit 4")); x.ExitCode != 4 {
		t.Errorf("a new job: %+v", x)
	}
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	x, out := a.exited(l.Key)
	if x.ExitCode != 9 || out != "one\ntwo\n" || !x.JobDone || x.Usage.MaxRSS <= 0 {
		t.Errorf("%+v %q", x, out)
	}
	child, _ := strconv.Atoi(strings.TrimSpace(a.read("child")))
	if child == 0 || a.alive(child) {
		t.Errorf("child %d outlived its job", child)
	}
	if _, err := os.Stat(filepath.Join(a.dir, "bireme-2.0")); !os.IsNotExist(err) {
		t.Errorf("temporary directory is left: %v", err)
	}
}

// descriptorStory leaves the keeper no descriptor for an agent that comes: it waits without spinning, and then serves.
func descriptorStory(t *testing.T, a *agent) {
	var old unix.Rlimit
	pid := a.cmd.Process.Pid
	none := unix.Rlimit{Cur: 3}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		t.Fatal(err)
	}
	none.Max = old.Max
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &none, nil); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("unix", filepath.Join(a.state(), "keeper.sock"))
	if err != nil {
		t.Fatal(err)
	}
	conn := wire.NewConn(c)
	defer conn.Close()
	if err := conn.Send(wire.TypeHello, wire.AgentHello{Version: wire.KeeperVersion}); err != nil {
		t.Fatal(err)
	}
	before := cpuTicks(t, pid)
	if err := c.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("answered without a descriptor: %v", err)
	}
	if used := cpuTicks(t, pid) - before; used > 10 { // hundredths of a second
		t.Errorf("spun for %d ticks", used)
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	if f, err := conn.Next(); err != nil || f.Type != wire.TypeKeeperHello {
		t.Errorf("served again: message %d, %v", f.Type, err)
	}
}

// cpuTicks is the processor time of a process so far.
func cpuTicks(t *testing.T, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.Atoi(f[11])
	sys, err2 := strconv.Atoi(f[12])
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return user + sys
}

// Jobs that begin after one has lost the node wait until nothing of that one is left: what it had is theirs.
func leftStory(t *testing.T, a *agent) {
	there := func(name string) func() bool {
		return func() bool { _, err := os.Stat(filepath.Join(a.dir, name)); return err == nil }
	}
	old := a.batch(1, "trap 'touch asked; while [ ! -e go ]; do sleep 0.01; done; touch over; exit 0' TERM; touch ready; "+
		"while :; do sleep 0.01; done")
	old.Key.Step, old.Time.KillGrace = "0", time.Minute
	a.launch(old)
	a.started(old.Key)
	a.until("the step to run", there("ready"))
	a.send(wire.TypeFinish, wire.Finish{Job: 1, Left: true})
	next := a.batch(2, "[ -e over ] && echo after || echo beside")
	a.launch(next)
	a.until("the step to be asked to end", there("asked"))
	if err := os.WriteFile(filepath.Join(a.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if x, tail := a.exited(next.Key); x.ExitCode != 0 || tail != "after\n" {
		t.Errorf("%+v: it ran %q the job that had left", x, tail)
	}
}
