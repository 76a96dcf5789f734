package initd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// MaxEnv bounds the environment that is read; the kernel would refuse to exec with more.
const MaxEnv = 4 << 20

// The exit statuses of failures before the command runs, as shells give them.
const (
	ExitCannotRun = 126
	ExitNotFound  = 127
)

// forwarded are the signals handed on. What the kernel or the Go runtime sends to a process about itself is not.
var forwarded = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGCONT, syscall.SIGWINCH,
}

// Command is what to run.
type Command struct {
	Argv []string
	Env  []string
}

// ReadEnv reads NUL-separated KEY=VALUE to the end of r. Secrets come this way because a command line is public.
func ReadEnv(r io.Reader) ([]string, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxEnv+1))
	if err != nil {
		return nil, fmt.Errorf("read environment: %w", err)
	}
	if len(data) > MaxEnv {
		return nil, fmt.Errorf("read environment: it has more than %d bytes", MaxEnv)
	}
	var env []string
	for _, kv := range strings.Split(string(data), "\x00") {
		if kv == "" {
			continue
		}
		if strings.IndexByte(kv, '=') <= 0 {
			return nil, errors.New("read environment: an entry is not KEY=VALUE") // the entry may be a secret
		}
		env = append(env, kv)
	}
	return env, nil
}

// Run runs c with our standard streams to its end and gives the status to exit with: its own, or 128 plus the signal
// that ended it. Orphans of the command become our children and are reaped; they are not waited for, because a container
// ends with its command.
func Run(c Command) (int, error) {
	path, err := exec.LookPath(c.Argv[0])
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return ExitNotFound, fmt.Errorf("%s: command not found", c.Argv[0])
		}
		return ExitCannotRun, err
	}
	// As pid 1 orphans come to us anyway; otherwise we ask for them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return ExitCannotRun, fmt.Errorf("become the parent of orphans: %w", err)
	}
	// Signals that come before the command runs wait in the channel and are handed on when it does.
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, forwarded...)
	defer signal.Stop(signals)

	pid, err := syscall.ForkExec(path, c.Argv, &syscall.ProcAttr{Env: c.Env, Files: []uintptr{0, 1, 2}})
	if err != nil {
		return ExitCannotRun, fmt.Errorf("run %s: %w", path, err)
	}
	ended := make(chan syscall.WaitStatus, 1)
	go func() { ended <- reap(pid) }() // ends when the command does, which Run waits for
	for {
		select {
		case s := <-signals:
			// The command may be gone already: that is no fault.
			_ = syscall.Kill(pid, s.(syscall.Signal))
		case status := <-ended:
			return exitStatus(status), nil
		}
	}
}

// reap collects every child until pid ends. One loop takes all ends, so that none is taken from another.
func reap(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // no child is left, and ours was not seen: nobody else could have taken it
			panic("bireme-init: its child is gone: " + err.Error())
		case got == pid:
			return status
		}
	}
}

func exitStatus(s syscall.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}
