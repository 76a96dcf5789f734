package step

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/wire"
)

// A keeper waits for every child of its process, so each test has one in a process of its own: this test binary again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == InitArgument {
		Init()
	}
	if dir := os.Getenv("STEP_TEST_KEEPER"); dir != "" {
		if err := keeperMain(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func keeperMain(dir string) error {
	runtime.GOMAXPROCS(max(4, runtime.NumCPU())) // as the command does
	debug.SetGCPercent(400)
	if path := os.Getenv("STEP_TEST_PROFILE"); path != "" { // to look at a benchmark from inside
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	name := os.Getenv("STEP_TEST_CGROUP")
	if name == "v1" { // as on a machine without a cgroup2 mount
		name = ""
		detect = func() (cgroup.Layout, error) {
			l, err := cgroup.Detect()
			l.V2 = nil
			return l, err
		}
	}
	if name == "hidden" { // as in a container that may not write to its cgroups
		name = ""
		detect = func() (cgroup.Layout, error) { return cgroup.Layout{}, nil }
	}
	k, err := New(slog.New(slog.NewTextHandler(os.Stderr, nil)), Config{
		Dir: dir, Cgroup: name, Unkillable: 10 * time.Second,
	})
	if err != nil {
		return err
	}
	return k.Run(ctx)
}

// agent is the test's end of a keeper.
type agent struct {
	t      testing.TB
	dir    string
	cgroup string
	cmd    *exec.Cmd
	conn   *wire.Conn
	hello  wire.KeeperHello
	kept   []wire.Frame // read but not asked for yet
	ref    uint64
}

// startKeeper starts a keeper and connects. It ends with the test, and must leave nothing behind.
func startKeeper(t testing.TB, cgroup string) *agent {
	t.Helper()
	dir, err := os.MkdirTemp("", "keeper")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	a := &agent{t: t, dir: dir, cgroup: cgroup}
	t.Cleanup(func() {
		if a.cmd != nil {
			a.stop()
		}
		if left, _ := os.ReadDir(filepath.Join(dir, "state", "spool")); len(left) > 0 {
			t.Errorf("left in the spool: %v", left)
		}
		os.RemoveAll(dir)
	})
	a.start()
	return a
}

func (a *agent) start() {
	a.t.Helper()
	a.cmd = exec.Command("/proc/self/exe")
	a.cmd.Env = append(os.Environ(), "STEP_TEST_KEEPER="+a.state(), "STEP_TEST_CGROUP="+a.cgroup)
	a.cmd.Stderr = os.Stderr
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := a.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.connect()
}

func (a *agent) state() string { return filepath.Join(a.dir, "state") }

// connect dials until the keeper listens.
func (a *agent) connect() {
	a.t.Helper()
	var c net.Conn
	a.until("keeper listens", func() bool {
		var err error
		c, err = net.Dial("unix", filepath.Join(a.state(), "keeper.sock"))
		return err == nil
	})
	a.conn, a.kept = wire.NewConn(c), nil
	if err := a.conn.Send(wire.TypeHello, wire.AgentHello{Version: wire.KeeperVersion}); err != nil {
		a.t.Fatal(err)
	}
	a.hello = wire.KeeperHello{}
	a.expect(wire.TypeKeeperHello, &a.hello, nil)
}

// until waits for a state of the world that nobody tells us about.
func (a *agent) until(what string, ok func() bool) {
	a.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 30_000 {
		if ok() {
			return
		}
		<-tick.C
	}
	a.t.Fatalf("waited in vain: %s", what)
}

func (a *agent) stop() {
	a.t.Helper()
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		a.t.Fatal(err)
	}
	if err := a.cmd.Wait(); err != nil {
		a.t.Errorf("keeper: %v", err)
	}
	a.cmd = nil
}

// kill ends the keeper as nothing else does.
func (a *agent) kill() {
	a.t.Helper()
	if err := a.cmd.Process.Kill(); err != nil {
		a.t.Fatal(err)
	}
	_ = a.cmd.Wait()
	a.conn.Close()
}

func (a *agent) send(t wire.Type, m any, payload ...[]byte) {
	a.t.Helper()
	if err := a.conn.Send(t, m, payload...); err != nil {
		a.t.Fatal(err)
	}
}

// expect waits for a message of a type that match accepts; others are kept for later.
func (a *agent) expect(t wire.Type, m any, match func() bool) wire.Frame {
	a.t.Helper()
	for i, f := range a.kept {
		if f.Type == t {
			if err := f.Decode(m); err != nil {
				a.t.Fatal(err)
			}
			if match == nil || match() {
				a.kept = append(a.kept[:i:i], a.kept[i+1:]...)
				return f
			}
		}
	}
	for {
		f, err := a.conn.Next()
		if err != nil {
			a.t.Fatalf("waiting for message %d: %v", t, err)
		}
		if f.Type == t {
			if err := f.Decode(m); err != nil {
				a.t.Fatal(err)
			}
			if match == nil || match() {
				return f
			}
		}
		a.kept = append(a.kept, f)
	}
}

func (a *agent) started(key wire.Key) wire.Started {
	a.t.Helper()
	var m wire.Started
	a.expect(wire.TypeStarted, &m, func() bool { return m.Key == key })
	return m
}

// exited waits for the end of a step; the payload is the end of its output.
func (a *agent) exited(key wire.Key) (wire.Exited, string) {
	a.t.Helper()
	var m wire.Exited
	f := a.expect(wire.TypeExited, &m, func() bool { got := m.Key == key; return got || reset(&m) })
	return m, string(f.Payload)
}

// reset empties a message so that the next one is decoded afresh, and is false.
func reset[M any](m *M) bool {
	var zero M
	*m = zero
	return false
}

func (a *agent) ask(t wire.Type, m any, ref uint64) wire.Reply {
	a.t.Helper()
	a.send(t, m)
	var r wire.Reply
	a.expect(wire.TypeReply, &r, func() bool { return r.Ref == ref })
	return r
}

// batch makes a launch of a script as the present user, its output in out.txt of the test's directory.
func (a *agent) batch(job int64, script string) *wire.Launch {
	return &wire.Launch{
		Key:      wire.Key{Job: core.JobID(job), Step: wire.BatchStep, Node: "n1"},
		Identity: wire.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())},
		Program:  wire.Program{WorkDir: a.dir},
		Stdio:    wire.Stdio{Stdout: "out.txt", NoticePrefix: "keeper: error: "},
		Time:     wire.Timing{KillGrace: 200 * time.Millisecond, Unkillable: 10 * time.Second},
		EndsJob:  true,
		Script:   []byte("#!/bin/sh\n" + script + "\n"),
		Env:      wire.JoinEnv([]string{"PATH=/usr/bin:/bin", "A=b c"}),
	}
}

func (a *agent) launch(l *wire.Launch) {
	a.t.Helper()
	if err := a.conn.SendLaunch(l); err != nil {
		a.t.Fatal(err)
	}
}

// run launches and waits for the end.
func (a *agent) run(l *wire.Launch) (wire.Exited, string) {
	a.t.Helper()
	a.launch(l)
	return a.exited(l.Key)
}

func (a *agent) read(name string) string {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join(a.dir, name))
	if err != nil {
		a.t.Fatal(err)
	}
	return string(b)
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	if unix.Kill(pid, 0) != nil {
		return false
	}
	_, _, ok := procStat(pid)
	return ok
}

// alive reports whether a process runs that a job of this test, whose working directory is the test's, knows by this
// number.
func (a *agent) alive(pid int) bool {
	if a.hello.Containment != wire.PIDNS {
		return alive(pid)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, f := range files {
		b, _ := os.ReadFile(f) // it may have ended
		_, line, _ := strings.Cut(string(b), "\nNSpid:")
		line, _, _ = strings.Cut(line, "\n")
		ids := strings.Fields(line)
		if dir, _ := os.Readlink(filepath.Join(filepath.Dir(f), "cwd")); dir == a.dir && len(ids) > 1 &&
			ids[len(ids)-1] == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

func contains(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("got %q, want %q in it", text, want)
	}
}
