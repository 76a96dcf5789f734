package nice

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
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
	}
	for s := range seen {
		fmt.Println(s)
	}
	if group, err := os.ReadFile("/proc/self/autogroup"); err == nil {
		fmt.Println("session", strings.Fields(string(group))[2])
	}
	cmd := exec.Command("nice")
	cmd.Stdout = os.Stdout
	fmt.Print("program ")
	if err := Run(cmd); err != nil {
		fmt.Println(err)
	}
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
	want := "threads -7\n"
	if _, err := os.Stat("/proc/self/autogroup"); err == nil {
		want += "session -7\n"
	}
	want += "program 0"
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
	if !strings.HasPrefix(got, "threads "+want+"\n") || !strings.HasSuffix(got, "program "+want) {
		t.Errorf("from %s: %q", from, got)
	}
}
