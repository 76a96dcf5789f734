//go:build e2e

package cgroup

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"
)

// detect asks once, before any thread of this process is in a test's cgroup.
var detect = sync.OnceValues(Detect)

func TestMain(m *testing.M) {
	_, _ = detect()
	os.Exit(m.Run())
}

// tree makes a tree for a test, from the layout that edit leaves of this machine's.
func tree(t *testing.T, name string, edit func(*Layout)) *Tree {
	t.Helper()
	l, err := detect()
	if err != nil {
		t.Fatal(err)
	}
	edit(&l)
	tr, err := Prepare(l, "bireme-test-"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		dirs := tr.Dirs()
		tr.Close()
		if err := Clean(ctx, dirs); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// spawn starts a program born in the step's cgroups.
func spawn(t *testing.T, s *Step, argv ...string) *exec.Cmd {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer func() {
		if err := s.Leave(); err != nil {
			t.Fatal(err)
		}
	}()
	if err := s.Join(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: s.FD() >= 0, CgroupFD: max(s.FD(), 0)}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func place1(t *testing.T, tr *Tree, lim Limits) (*Job, *Step) {
	t.Helper()
	j, err := tr.Get(lim)
	if err != nil {
		t.Fatal(err)
	}
	s, err := j.Step()
	if err != nil {
		t.Fatal(err)
	}
	return j, s
}

// Where there is no v2 mount the freezer holds the processes.
func TestV1Alone(t *testing.T) {
	t.Parallel()
	tr := tree(t, "v1", func(l *Layout) { l.V2 = nil })
	if tr.V2() || tr.clone {
		t.Fatal("not v1")
	}
	j, s := place1(t, tr, Limits{Memory: 100 << 20})
	cmd := spawn(t, s, "/bin/sh", "-c",
		"i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; setsid sleep 1000 & sleep 1000; true")
	procs := func() int {
		list, err := s.Procs()
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	wait(t, "three processes", func() bool { return procs() == 3 })
	if err := tr.Put(j); err == nil {
		t.Fatal("a place with processes was given back")
	}
	if err := j.Freeze(true); err != nil {
		t.Fatal(err)
	}
	if err := j.Freeze(false); err != nil {
		t.Fatal(err)
	}
	wait(t, "all dead", func() bool {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		empty, err := s.Empty()
		return empty && err == nil
	})
	u, err := s.Usage()
	if err != nil || u.UserCPU <= 0 || u.Peak <= 0 {
		t.Errorf("%+v %v", u, err)
	}
	if err := tr.Put(j); err != nil {
		t.Fatal(err)
	}
	_, s = place1(t, tr, Limits{})
	if u, err := s.Usage(); err != nil || u.UserCPU != 0 || u.Now > trace {
		t.Errorf("the next job begins with %+v, %v", u, err)
	}
}

// A v2 cgroup has its devices filtered by a program.
func TestV2Devices(t *testing.T) {
	t.Parallel()
	tr := tree(t, "v2", func(l *Layout) {
		if l.V2 == nil {
			t.Skip("no cgroup2 mount")
		}
		l.V1 = nil
	})
	try := func(s *Step) bool {
		return spawn(t, s, "/bin/sh", "-c", ": </dev/kmsg").Wait() == nil
	}
	j, s := place1(t, tr, Limits{Devices: []string{}})
	if try(s) {
		t.Error("a device that is not in the list was opened")
	}
	if err := tr.Put(j); err != nil {
		t.Fatal(err)
	}
	j, s = place1(t, tr, Limits{Devices: []string{"c 1:11 r"}})
	if !try(s) {
		t.Error("a device in the list was not opened")
	}
	if err := tr.Put(j); err != nil {
		t.Fatal(err)
	}
	j, s = place1(t, tr, Limits{})
	if !try(s) {
		t.Error("without a list a device was not opened")
	}
	if err := tr.Put(j); err != nil {
		t.Fatal(err)
	}
	if _, s = place1(t, tr, Limits{Deny: []string{"c 1:11 rwm"}}); try(s) ||
		spawn(t, s, "/bin/sh", "-c", ": </dev/full").Wait() != nil {
		t.Error("a denied device was opened, or another was not")
	}
}

// Clean ends what a dead keeper left, frozen jobs included.
func TestClean(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Layout){"all": func(*Layout) {}, "v1": func(l *Layout) { l.V2 = nil }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := tree(t, "clean-"+name, edit)
			j, s := place1(t, tr, Limits{})
			cmd := spawn(t, s, "/bin/sh", "-c", "setsid sleep 1000 & sleep 1000; true")
			if err := j.Freeze(true); err != nil {
				t.Fatal(err)
			}
			dead := make(chan error, 1)
			go func() { dead <- cmd.Wait() }()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := Clean(ctx, tr.Dirs()); err != nil {
				t.Fatal(err)
			}
			<-dead
			for _, dir := range tr.Dirs() {
				if left, _ := filepath.Glob(dir); len(left) > 0 {
					t.Errorf("%s is left", dir)
				}
			}
		})
	}
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for range 5000 {
		if ok() {
			return
		}
		<-tick.C
	}
	t.Fatalf("waited in vain: %s", what)
}

// TestAllJobsTogether: the bounds of many jobs add up to no more than three quarters of the kernel's process numbers.
func TestAllJobsTogether(t *testing.T) {
	tr := tree(t, "all", func(*Layout) {})
	if tr.by[pids] < 0 {
		t.Skip("this machine does not bound processes")
	}
	file := filepath.Join(t.TempDir(), "pid_max")
	if err := os.WriteFile(file, []byte("4000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr.leavePIDs(file)
	b, err := os.ReadFile(filepath.Join(tr.hiers[tr.by[pids]].dir, "pids.max"))
	if err != nil || string(b) != "3000\n" {
		t.Errorf("all jobs together have %q processes: %v", b, err)
	}
}
