//go:build e2e

package step

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core/filename"
	"bireme.dev/bireme/internal/step/cgroup"
	"bireme.dev/bireme/internal/wire"
)

// These tests need root and cgroups, and the user games (uid 5, gid 60) that every Debian has.

func TestInCgroups(t *testing.T) {
	needRoot(t)
	t.Parallel()
	stories(t, "")
}

// TestInCgroupsV1 has no cgroup2 mount: the freezer holds the processes.
func TestInCgroupsV1(t *testing.T) {
	needRoot(t)
	t.Parallel()
	stories(t, "v1")
	limits(t, "v1")
}

func TestCgroupLimits(t *testing.T) {
	needRoot(t)
	t.Parallel()
	limits(t, "")
}

func limits(t *testing.T, tree string) {
	for name, story := range map[string]func(*testing.T, *agent){
		"out of memory":          oomStory,
		"usage counts children":  usageStory,
		"cpuset, pids, devices":  controllersStory,
		"denied devices":         denyStory,
		"places are used again":  reuseStory,
		"fork bomb dies":         bombStory,
		"as another user":        userStory,
		"nothing is left behind": cleanStory,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startKeeper(t, tree)
			if c := a.hello.Containment; c != wire.CgroupV1 && c != wire.CgroupV2 {
				t.Fatalf("containment %s", c)
			}
			story(t, a)
		})
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("these tests need root: make test runs them so")
	}
}

// eat fills memory until it is killed: dd holds its block as anonymous memory.
const eat = "dd if=/dev/zero of=/dev/null bs=200M count=1 2>/dev/null"

func oomStory(t *testing.T, a *agent) {
	l := a.batch(1, eat)
	l.Limits.Memory = 50 << 20
	x, out := a.run(l)
	if x.Cause != wire.CauseOOM || x.ExitCode != 128+9 {
		t.Errorf("%+v", x)
	}
	contains(t, out, "keeper: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks have been "+
		"OOM Killed.\n")
	if x.Usage.MaxRSS < 40<<20 || x.Usage.MaxRSS > 51<<20 {
		t.Errorf("peak of %d bytes under a limit of 50 MiB", x.Usage.MaxRSS)
	}
	l = a.batch(2, eat)
	l.Limits.Memory = 400 << 20
	if x, _ := a.run(l); x.Cause != "" || x.ExitCode != 0 || x.Usage.MaxRSS < 200<<20 {
		t.Errorf("with enough: %+v", x)
	}
	l = a.batch(3, eat)
	if x, _ := a.run(l); x.Cause != "" || x.ExitCode != 0 {
		t.Errorf("without a limit: %+v", x)
	}
	// The limit is the job's: two steps share it.
	l = a.batch(4, "sleep 1000")
	l.Limits.Memory, l.EndsJob = 50<<20, false
	a.launch(l)
	a.started(l.Key)
	step := a.batch(4, eat)
	step.Key.Step, step.EndsJob, step.Limits = "0", false, l.Limits
	if x, _ := a.run(step); x.Cause != wire.CauseOOM {
		t.Errorf("step: %+v", x)
	}
	a.finish(4)
	if x, _ := a.exited(l.Key); x.Cause == wire.CauseOOM {
		t.Errorf("the other step's kill counts for the batch step: %+v", x)
	}
}

func usageStory(t *testing.T, a *agent) {
	// A child nobody waits for and a file's worth of page cache.
	l := a.batch(1, `(dd if=/dev/zero of=/dev/null bs=64M count=30 2>/dev/null; touch done) & disown 2>/dev/null
while [ ! -e done ]; do sleep 0.01; done; dd if=/dev/zero of=big bs=1M count=300 2>/dev/null`)
	x, _ := a.run(l)
	if x.Usage.UserCPU+x.Usage.SysCPU < 50_000 {
		t.Errorf("CPU time of the child is missing: %+v", x.Usage)
	}
	if x.Usage.MaxRSS < 64<<20 || x.Usage.MaxRSS > 250<<20 {
		t.Errorf("memory: %+v", x.Usage)
	}
	l = a.batch(2, "touch ready; sleep 1000")
	a.launch(l)
	pid := a.started(l.Key).PID
	a.send(wire.TypeStat, wire.Stat{Ref: 5, Job: 2})
	var u wire.Usage
	a.expect(wire.TypeUsage, &u, func() bool { return u.Ref == 5 })
	if !u.Found || u.RSS <= 0 || len(u.PIDs) == 0 || u.PIDs[0] != pid {
		t.Errorf("%+v", u)
	}
	a.ask(wire.TypeKill, wire.Kill{Ref: 6, Job: 2, Grace: -1}, 6)
	if x, _ := a.exited(l.Key); x.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", x)
	}
}

func controllersStory(t *testing.T, a *agent) {
	have := strings.Join(a.hello.Enforces, " ")
	for _, c := range []string{"memory", "cpuset", "pids", "devices", "freeze"} {
		if !strings.Contains(have, c) {
			t.Errorf("this machine cannot hold %s: %s", c, have)
		}
	}
	l := a.batch(1, "grep Cpus_allowed_list /proc/self/status; head -c 1 /dev/zero >/dev/null && echo zero; (: "+
		"</dev/kmsg) 2>/dev/null && echo kmsg; echo end")
	l.Limits = wire.Limits{CPUs: "1", Devices: []string{}}
	l.Stdio.Stderr = "/dev/null"
	x, out := a.run(l)
	if out != "Cpus_allowed_list:\t1\nzero\nend\n" {
		t.Errorf("%q %+v", out, x)
	}
	l = a.batch(2, "grep Cpus_allowed_list /proc/self/status; (: </dev/kmsg) && echo kmsg")
	l.Limits = wire.Limits{Devices: []string{"c 1:11 r"}}
	if _, out := a.run(l); !strings.Contains(out, "0-") || !strings.Contains(out, "kmsg\n") {
		t.Errorf("allowed, and all CPUs again: %q", out)
	}
	l = a.batch(3, "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; echo all")
	l.Limits = wire.Limits{PIDs: 5}
	if x, out := a.run(l); strings.Contains(out, "all") || x.ExitCode == 0 {
		t.Errorf("nine processes under a limit of five: %q %+v", out, x)
	}
	l = a.batch(4, "true")
	l.Limits = wire.Limits{CPUs: "4000"}
	if x, _ := a.run(l); x.Cause != wire.CauseLaunchFailed || !strings.Contains(x.Message, "cpuset") {
		t.Errorf("%+v", x)
	}
}

// denyStory has device files in the place of GPUs: one is the job's, the other is not.
func denyStory(t *testing.T, a *agent) {
	mine, other := filepath.Join(a.dir, "gpu0"), filepath.Join(a.dir, "gpu1")
	for path, minor := range map[string]int{mine: 5, other: 7} { // as /dev/zero and /dev/full
		if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|minor); err != nil {
			t.Fatal(err)
		}
	}
	try := "for f in " + mine + " " + other + " /dev/full /dev/null /dev/urandom; do (: <$f) 2>/dev/null && echo " +
		"${f##*/}; done; mknod again c 1 7 2>/dev/null; true"
	all := "gpu0\ngpu1\nfull\nnull\nurandom\n"
	for i, tc := range []struct {
		deny []string
		want string
	}{
		{[]string{other, filepath.Join(a.dir, "gpu2")}, "gpu0\nnull\nurandom\n"}, // the last is not there
		{[]string{other}, "gpu0\nnull\nurandom\n"},
		{[]string{mine}, "gpu1\nfull\nnull\nurandom\n"}, // the same place, other rules
		{[]string{mine, other}, "null\nurandom\n"},
		{nil, all},
	} {
		l := a.batch(int64(i+1), try)
		l.Limits.DenyDevices = tc.deny
		if x, out := a.run(l); out != tc.want {
			t.Errorf("without %v: %q %+v", tc.deny, out, x)
		}
	}
	l := a.batch(10, "true")
	l.Limits.DenyDevices = []string{a.dir}
	if x, _ := a.run(l); x.Cause != wire.CauseLaunchFailed || !strings.Contains(x.Message, "no device file") {
		t.Errorf("%+v", x)
	}
}

func reuseStory(t *testing.T, a *agent) {
	// The same directories, one job after the other: nothing of one is seen in the next.
	for i := int64(1); i <= 20; i++ {
		l := a.batch(i, "true")
		if i%5 == 0 {
			l.Script = []byte("#!/bin/sh\n" + eat + "\n")
			l.Limits.Memory = 40 << 20
		}
		x, _ := a.run(l)
		if i%5 == 0 {
			if x.Cause != wire.CauseOOM {
				t.Errorf("job %d: %+v", i, x)
			}
			continue
		}
		if x.Cause != "" || x.Usage.MaxRSS > 20<<20 || x.Usage.UserCPU+x.Usage.SysCPU > 500_000 {
			t.Errorf("job %d: %+v", i, x)
		}
	}
	dirs, err := cgroup.Load(filepath.Join(a.state(), "cgroups"))
	if err != nil {
		t.Fatal(err)
	}
	places, _ := filepath.Glob(filepath.Join(dirs[0], "job*"))
	if len(places) > 3 {
		t.Errorf("%d places for jobs that came one by one", len(places))
	}
}

func bombStory(t *testing.T, a *agent) {
	l := a.batch(1, `bomb() { while :; do setsid sh -c 'sleep 0.01; exec sh -c "sleep 1000"' & sleep 0.001; done; }; `+
		`bomb & bomb & sleep 0.3`)
	x, _ := a.run(l)
	if x.Cause != "" || !x.JobDone {
		t.Errorf("%+v", x)
	}
	if left := markedProcs("BIREME_LAUNCH=1.0.batch@"+treeName(a.state()), nil); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

func userStory(t *testing.T, a *agent) {
	home := filepath.Join(a.dir, "games")
	for path, mode := range map[string]os.FileMode{home: 0o700, filepath.Join(a.dir, "secret"): 0o700} {
		if err := os.Mkdir(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(home, 5, 60); err != nil {
		t.Fatal(err)
	}
	games := wire.Identity{UID: 5, GID: 60, Name: "games", Home: home, Groups: []uint32{60, 20}}
	l := a.batch(1, `id -u; id -g; id -G; stat -c %u:%a "$TMPDIR" "$0"; cat ../secret/x 2>/dev/null || echo closed; `+
		`grep -c . /proc/self/cgroup >/dev/null; ps -o sid= -p $$ | tr -d ' ' | grep -qx $$ && echo leader`)
	l.Identity, l.Program.WorkDir, l.TmpBase = games, home, a.dir
	x, out := a.run(l)
	if want := "5\n60\n60 20\n5:700\n5:700\nclosed\nleader\n"; out != want {
		t.Errorf("got %q, want %q, %+v", out, want, x)
	}
	st, err := os.Stat(filepath.Join(home, "out.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if sys := st.Sys().(*syscall.Stat_t); sys.Uid != 5 || sys.Gid != 60 {
		t.Errorf("output belongs to %d:%d", sys.Uid, sys.Gid)
	}
	// What the user may not open, the keeper does not open for them.
	l = a.batch(2, "true")
	l.Identity = games
	l.Stdio.Stdout = filepath.Join(a.dir, "secret", "out")
	x, _ = a.run(l)
	if x.Cause != wire.CauseLaunchFailed || x.Signal != 53 || x.Message != l.Stdio.Stdout+": permission denied" {
		t.Errorf("%+v", x)
	}
	l = a.batch(3, "pwd")
	l.Identity, l.Program.WorkDir = games, filepath.Join(a.dir, "secret")
	l.Stdio.Stdout = filepath.Join(home, "3.out")
	if _, out := a.run(l); !strings.HasSuffix(out, "/tmp\n") ||
		!strings.Contains(out, "Permission denied: going to /tmp") {
		t.Errorf("got %q", out)
	}
	// A group given by the launch opens what it opens.
	shared := filepath.Join(a.dir, "shared")
	if err := os.Mkdir(shared, 0o770); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(shared, 0o770), os.Chown(shared, 0, 20)); err != nil {
		t.Fatal(err)
	}
	l = a.batch(4, "echo ok")
	l.Identity, l.Stdio.Stdout = games, filepath.Join(shared, "%j.out")
	l.Stdio.Names = filename.Names{Job: 4}
	if x, out := a.run(l); out != "ok\n" {
		t.Errorf("%q %+v", out, x)
	}
	// Afterwards the keeper is root again.
	l = a.batch(5, "id -u")
	l.Program.WorkDir = filepath.Join(a.dir, "secret")
	if x, out := a.run(l); out != "0\n" {
		t.Errorf("%q %+v", out, x)
	}
	l = a.batch(6, "id -G")
	l.Identity = wire.Identity{UID: 5, GID: 60, Name: "games"}
	l.Stdio.Stdout = filepath.Join(home, "6.out")
	if _, out := a.run(l); !strings.HasPrefix(out, "60") {
		t.Errorf("groups looked up: %q", out)
	}
}

func cleanStory(t *testing.T, a *agent) {
	for i := range int64(8) {
		l := a.batch(i+1, "sleep 1000")
		l.Limits = wire.Limits{Memory: 100 << 20, CPUs: "0", PIDs: 50, Devices: []string{}}
		a.launch(l)
		a.started(l.Key)
	}
	dirs, err := cgroup.Load(filepath.Join(a.state(), "cgroups"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(err)
	}
	a.kill() // once with a dead keeper's rest…
	a.start()
	if len(a.hello.Ended) != 8 {
		t.Errorf("%d ended", len(a.hello.Ended))
	}
	l := a.batch(20, "sleep 1000")
	a.launch(l)
	a.started(l.Key)
	since := time.Now()
	a.stop() // …and once in good order
	if took := time.Since(since); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", dir, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(a.state(), "cgroups")); len(left) > 0 {
		t.Error(fmt.Sprint("left: ", left))
	}
}
