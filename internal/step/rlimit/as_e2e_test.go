//go:build e2e

package rlimit

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

func asNobody(args ...string) *exec.Cmd {
	c := exec.Command(args[0], args[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return c
}

// TestLimitsAsTheUser: limits of a user's process are set with the user's real ids, and while that happens the user
// reaches no thread of this process by a signal.
func TestLimitsAsTheUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("this test needs root")
	}
	target := asNobody("sleep", "1000")
	if err := target.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = target.Process.Kill(); _ = target.Wait() }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// kill takes the number of a thread, too, and looks at that thread's ids.
	probe := asNobody("sh", "-c", fmt.Sprintf(
		`i=0; while [ $i -lt 100000 ]; do kill -0 %d 2>/dev/null && echo reached && exit 1; i=$((i+1)); done`, unix.Gettid()))
	var said bytes.Buffer
	probe.Stdout = &said
	if err := probe.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- probe.Wait() }()
	for n := uint64(0); ; n++ {
		limit := unix.Rlimit{Cur: 50 + n%10, Max: 100}
		if err := setAs(nobody, nobody, target.Process.Pid, unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-over:
			if err != nil {
				t.Errorf("the user reaches a thread of root's process: %v, %s", err, &said)
			}
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", target.Process.Pid))
			want := fmt.Sprintf("Max open files            %-20d %-20d", limit.Cur, limit.Max)
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("%v: no %q in\n%s", err, want, text)
			}
			return
		default:
		}
	}
}
