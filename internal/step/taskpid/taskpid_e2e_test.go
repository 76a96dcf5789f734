//go:build e2e

package taskpid

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestTellPID has programs and scripts born with room for their number, and both ways of filling it in.
func TestTellPID(t *testing.T) {
	script := t.TempDir() + "/s.sh"
	if err := os.WriteFile(script, []byte("#!/bin/sh -e\necho $$ $SLURM_TASK_PID $LAST\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ways := map[string]func(pid, vars int) bool{
		"stack": func(pid, vars int) bool {
			return tellByStack(pid, vars, append([]byte(strconv.Itoa(pid)), make([]byte, 8-len(strconv.Itoa(pid)))...))
		},
		"file": func(pid, _ int) bool {
			tellByFile(pid, append([]byte(strconv.Itoa(pid)), make([]byte, 8-len(strconv.Itoa(pid)))...))
			return true
		},
	}
	for name, tell := range ways {
		for _, argv := range [][]string{{script, "a", "b"}, {"/bin/sh", "-c", "echo $$ $SLURM_TASK_PID $LAST"}} {
			runtime.LockOSThread() // who forks is who traces
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			env := Reserve([]string{"PATH=/usr/bin:/bin", taskPID + "7", "LAST=x" + strings.Repeat("y", 5000), "EMPTY="})
			pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
				Env: env, Files: []uintptr{0, w.Fd(), 2},
				Sys: &syscall.SysProcAttr{Ptrace: true},
			})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
				t.Fatalf("it did not stop: %v, %v", status, err)
			}
			told := tell(pid, len(env))
			if err := syscall.PtraceDetach(pid); err != nil {
				t.Fatal(err)
			}
			runtime.UnlockOSThread()
			buf := make([]byte, 8<<10)
			n, _ := r.Read(buf)
			r.Close()
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
				t.Fatal(err)
			}
			want := strconv.Itoa(pid) + " " + strconv.Itoa(pid) + " xyyyy"
			if !told || !strings.HasPrefix(string(buf[:n]), want) {
				t.Errorf("%s, %s: told %v; it says %.40q, want %q", name, argv[0], told, buf[:n], want)
			}
		}
	}
}
