package nice

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// envRole makes the test's program a process with a nice value of its own.
const envRole = "BIREME_NICE_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "":
		os.Exit(m.Run())
	case "raise":
		report(Raise(-7))
	case "lower":
		report(Lower())
	case "lowered": // by one that was raised
		if err := Raise(-5); err != nil {
			fmt.Println(err)
		}
		report(Lower())
	case "child":
		nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
		fmt.Println("program", 20-nice, sliceOf(0), err)
	}
}

// report prints the nice values of the process's threads, of its session and of a program that it runs.
func report(err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := map[string]bool{}
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, t := range tasks {
		stat, _ := os.ReadFile("/proc/self/task/" + t.Name() + "/stat")
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		seen["threads "+f[16]] = true
		tid, _ := strconv.Atoi(t.Name())
		seen[sliceOf(tid)] = true
	}
	for _, s := range slices.Sorted(maps.Keys(seen)) {
		fmt.Println(s)
	}
	if group, err := os.ReadFile("/proc/self/autogroup"); err == nil {
		fmt.Println("session", strings.Fields(string(group))[2])
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envRole+"=child")
	cmd.Stdout = os.Stdout
	if err := Run(cmd); err != nil {
		fmt.Println(err)
	}
	if now := sliceOf(unix.Gettid()); seen[now] != (len(seen) > 0) {
		fmt.Println("the thread is left with", now)
	}
}

// sliceOf says whether a thread has the slice of Raise. A kernel that knows no slices of threads shows none.
func sliceOf(tid int) string {
	switch a, err := unix.SchedGetAttr(tid, 0); {
	case err != nil:
		return err.Error()
	case a.Runtime == slice:
		return "slice short"
	default:
		return "slice default"
	}
}

// hasSlices is true where the kernel gives threads slices of their own.
func hasSlices() bool {
	a, err := unix.SchedGetAttr(0, 0)
	return err == nil && a.Runtime != 0
}

func play(t *testing.T, role string, argv ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	argv = append(argv, self)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), envRole+"="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// All threads and the session of a daemon that raises itself get its nice value, a program that it runs does not.
func TestRaise(t *testing.T) {
	t.Parallel()
	want := "slice short\nthreads -7\n"
	if !hasSlices() {
		want = "slice default\nthreads -7\n"
	}
	if _, err := os.Stat("/proc/self/autogroup"); err == nil {
		want += "session -7\n"
	}
	want += "program 0 slice default <nil>"
	if os.Geteuid() != 0 {
		want = os.ErrPermission.Error()
	}
	if got := play(t, "raise"); os.Geteuid() == 0 && got != want || !strings.HasSuffix(got, want) {
		t.Errorf("%q instead of %q", got, want)
	}
}

// A keeper that an agent with a nice value below 0 started has 0; one that has more keeps it.
func TestLower(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		checkLower(t, "-5", "0")
	}
	checkLower(t, "5", "5")
}

func checkLower(t *testing.T, from, want string) {
	t.Helper()
	got := play(t, "lower", "nice", "-n", from)
	if !strings.HasPrefix(got, "slice default\nthreads "+want+"\n") ||
		!strings.HasSuffix(got, "program "+want+" slice default <nil>") {
		t.Errorf("from %s: %q", from, got)
	}
}

// A process that was raised and lowers itself again has the kernel's default slice.
func TestLowerTakesTheSlice(t *testing.T) {
	t.Parallel()
	if got := play(t, "lowered"); !strings.Contains(got, "slice default\nthreads 0\n") {
		t.Errorf("%q", got)
	}
}
