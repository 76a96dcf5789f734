package initd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestMain lets the test program stand for bireme-init: Run takes over all children of its process.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-init" {
		code, err := Run(Command{Argv: os.Args[2:], Env: os.Environ()})
		if err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// asInit prepares this program as an init of argv; the test's end kills what hangs.
func asInit(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, os.Args[0], append([]string{"as-init"}, argv...)...)
}

func status(t *testing.T, err error) int {
	t.Helper()
	var e *exec.ExitError
	if err == nil {
		return 0
	}
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return e.ExitCode()
}

func TestRunEndsWithTheCommandsStatus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		argv []string
		want int
	}{
		"success":   {[]string{"sh", "-c", "exit 0"}, 0},
		"failure":   {[]string{"sh", "-c", "exit 7"}, 7},
		"signal":    {[]string{"sh", "-c", "kill -9 $$"}, 137},
		"not found": {[]string{"no-such-command-here"}, ExitNotFound},
		"no file":   {[]string{"/no/such/file"}, ExitNotFound},
		"directory": {[]string{"/"}, ExitCannotRun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := status(t, asInit(t, tc.argv...).Run()); got != tc.want {
				t.Errorf("exit status %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRunForwardsSignals(t *testing.T) {
	t.Parallel()
	cmd := asInit(t, "sh", "-c", `trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Scan()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lines.Scan()
	if got := lines.Text(); got != "got" {
		t.Errorf("the command printed %q, want got", got)
	}
	if got := status(t, cmd.Wait()); got != 3 {
		t.Errorf("exit status %d, want 3", got)
	}
}

// TestRunReapsOrphans: the command waits until the orphan's pid is gone, which a zombie's is not.
func TestRunReapsOrphans(t *testing.T) {
	t.Parallel()
	cmd := asInit(t, "sh", "-c", `pid=$(sh -c 'sh -c "exit 0" >/dev/null & echo $!'); while kill -0 $pid 2>/dev/null; do sleep 0.01; done; echo reaped`)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "reaped\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestReadEnv(t *testing.T) {
	t.Parallel()
	got, err := ReadEnv(strings.NewReader("A=1\x00B=two\nlines\x00C=\x00"))
	if diff := cmp.Diff([]string{"A=1", "B=two\nlines", "C="}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := ReadEnv(strings.NewReader("secret-without-a-name\x00")); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("want an error that does not show the entry, got %v", err)
	}
	if _, err := ReadEnv(bytes.NewReader(make([]byte, MaxEnv+1))); err == nil {
		t.Error("a huge environment is accepted")
	}
}
