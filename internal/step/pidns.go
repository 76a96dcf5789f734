package step

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Without cgroups, a keeper that may make PID namespaces gives each step one: when the first process of a namespace
// dies, the kernel kills all the others, whatever they have done to hide. That first process is not the user's, for the
// kernel withholds signals from it and orphans become its to reap; it is this program again, doing nearly nothing
// (Init). Tasks are forked into the namespace by a launcher thread that has entered it, so they are the keeper's own
// children as always: their ends, signals and limits are the same as with cgroups.
//
// Process numbers are the namespace's, so it has a /proc that agrees, in a mount namespace of its own that otherwise
// follows the machine's. Where that cannot be had the job sees the machine's /proc, and ps is of no use to it. Limits
// on memory, CPUs and devices are not held.
//
// User namespaces would give this to keepers without root, but they take the user's other groups and set-uid programs
// away, so such keepers stay weak.

// anchor is the first process of a step's namespace.
type anchor struct {
	child
	dead chan struct{} // closed when it, and so everything in its namespace, is gone
	ns   [2]int        // descriptors of its PID and mount namespaces
}

// kinds of the descriptors, the mount namespace last: leaving it needs nothing of the other.
var nsKinds = [2]struct {
	name string
	flag int
}{{"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS}}

// InitArgument makes the program of the keeper the first process of a namespace, when it is its only argument.
const InitArgument = "namespace-init"

// Init is that process's life. It ends by being killed. Its end of a pipe, descriptor 3, is closed when all is
// prepared.
func Init() {
	// What the machine mounts later is seen here, not the other way round.
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "") == nil {
		_ = unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	}
	signal.Ignore(unix.SIGCHLD) // the kernel reaps what comes to us
	for _, s := range []os.Signal{
		unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGTSTP, unix.SIGTTIN,
		unix.SIGTTOU,
	} {
		signal.Ignore(s)
	}
	_ = unix.Close(3)
	for {
		_ = unix.Pause()
	}
}

// canNamespace reports whether this process may make and enter namespaces.
func canNamespace() bool {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its change
		result <- unix.Unshare(unix.CLONE_NEWPID | unix.CLONE_NEWNS)
	}()
	return <-result == nil
}

// newAnchor makes a namespace for a step.
func (k *Keeper) newAnchor(mark string) (*anchor, error) {
	a := k.anchorOf()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	fd := null.Fd()
	spoilt := k.threads.do(func(*thread) {
		err = k.reaper.fork(&a.child, func() (int, error) {
			return syscall.ForkExec("/proc/self/exe", []string{"bireme-step", InitArgument}, &syscall.ProcAttr{
				Dir: "/", Env: []string{mark, "GOMAXPROCS=1"}, Files: []uintptr{fd, fd, fd, w.Fd()},
				Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS},
			})
		})
	})
	w.Close()
	if err = errors.Join(err, spoilt); err != nil {
		return nil, fmt.Errorf("make a PID namespace: %w", err)
	}
	if a.ns, err = openNamespace(strconv.Itoa(a.pid)); err == nil {
		_, err = r.Read(make([]byte, 1)) // ends when the pipe is closed, by death at the latest
	}
	if !errors.Is(err, io.EOF) {
		_ = k.reaper.signal(&a.child, unix.SIGKILL)
		a.close()
		return nil, fmt.Errorf("prepare a PID namespace: %w", err)
	}
	return a, nil
}

// openNamespace opens the namespaces of a process.
func openNamespace(pid string) (fds [2]int, err error) {
	fds = [2]int{-1, -1}
	for i, kind := range nsKinds {
		if fds[i], err = unix.Open("/proc/"+pid+"/ns/"+kind.name, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fds, err
		}
	}
	return fds, nil
}

func closeNamespace(fds *[2]int) {
	for i, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		fds[i] = -1
	}
}

// anchorOf makes an anchor that has no process yet.
func (k *Keeper) anchorOf() *anchor {
	a := &anchor{dead: make(chan struct{}), ns: [2]int{-1, -1}}
	a.exited = func(unix.WaitStatus, *unix.Rusage) { close(a.dead) }
	return a
}

func (a *anchor) close() {
	if a != nil {
		closeNamespace(&a.ns)
	}
}

func (a *anchor) gone() bool {
	select {
	case <-a.dead:
		return true
	default:
		return false
	}
}

// bear calls fork, which forks a process with a working directory given, so that the child is born in the step's
// namespace. The calling launcher thread comes back, or is spoilt: the next job must not be born there.
func (s *step) bear(th *thread, fork func() (int, error)) (pid int, err error) {
	if s == nil || s.anchor == nil {
		return fork()
	}
	// Who changes mount namespaces stands at the root of the new one.
	here, err := unix.Open(".", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("working directory: %w", err)
	}
	defer unix.Close(here)
	defer func() {
		if back := setNamespace(s.k.ownNS); back != nil {
			th.spoil(fmt.Errorf("leave a PID namespace: %w", back))
		} else if back := unix.Fchdir(here); back != nil {
			th.spoil(fmt.Errorf("go back to a working directory: %w", back))
		}
	}()
	if err := setNamespace(s.anchor.ns); err != nil {
		return 0, fmt.Errorf("enter a PID namespace: %w", err)
	}
	return fork()
}

// setNamespace makes the calling thread's children, and its view of the file system, those of a namespace.
func setNamespace(fds [2]int) error {
	for i, kind := range nsKinds {
		if err := unix.Setns(fds[i], kind.flag); err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
	}
	return nil
}

// openNamespaces finds out whether steps can have PID namespaces, where there are no cgroups.
func (k *Keeper) openNamespaces() error {
	if !k.root || !canNamespace() {
		k.log.Warn("neither cgroups nor PID namespaces: containment is weak")
		return nil
	}
	var err error
	if k.ownNS, err = openNamespace("self"); err != nil {
		return fmt.Errorf("the keeper's own namespaces: %w", err)
	}
	k.pidns = true
	return nil
}

// without leaves the anchor out of a list of processes.
func (a *anchor) without(list []int) []int {
	if a == nil {
		return list
	}
	return slices.DeleteFunc(list, func(pid int) bool { return pid == a.pid })
}
