package step

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// defaultUmask is that of the keeper, and of jobs that do not say.
const defaultUmask = 0o022

// threads are the launchers: operating-system threads, each with a working directory, umask and file-system identity of
// its own. They are few, because forking serialises anyway; more are started only when all have been busy for a while,
// for instance in a file system that hangs.
type threads struct {
	jobs chan func(*thread)
	wg   sync.WaitGroup

	mu sync.Mutex
	n  int
}

// thread is one launcher, as what runs on it sees it.
type thread struct {
	spoilt error // set when it cannot be used again: it could not come back from a cgroup or a user
}

func (th *thread) spoil(err error) { th.spoilt = err }

const (
	fewThreads  = 2
	manyThreads = 64
	threadWait  = 100 * time.Millisecond
)

func newThreads() *threads {
	t := &threads{jobs: make(chan func(*thread))}
	for range fewThreads {
		t.start()
	}
	return t
}

func (t *threads) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n >= manyThreads {
		return
	}
	t.n++
	t.wg.Go(t.serve)
}

// serve runs jobs until there are no more, or until one spoils the thread.
func (t *threads) serve() {
	// Never unlocked: the thread ends with this goroutine and takes its changed identity along.
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() { // a process's first thread cannot end before it
		other := make(chan struct{})
		go func() { defer close(other); t.serve() }()
		<-other // meanwhile nobody else gets this one
		runtime.UnlockOSThread()
		return
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		panic(fmt.Sprintf("unshare(CLONE_FS): %v", err))
	}
	unix.Umask(defaultUmask)
	var th thread
	for f := range t.jobs {
		if f(&th); th.spoilt != nil {
			t.mu.Lock()
			t.n--
			t.mu.Unlock()
			t.start()
			return
		}
	}
}

// do runs f on a launcher thread and waits for it. It returns what has spoilt the thread, if f did: that one is gone
// then, another is in its place.
func (t *threads) do(f func(*thread)) error {
	done := make(chan error, 1)
	g := func(th *thread) { f(th); done <- th.spoilt }
	select {
	case t.jobs <- g:
	default:
		wait := time.NewTimer(threadWait)
		defer wait.Stop()
		select {
		case t.jobs <- g:
		case <-wait.C:
			t.start()
			t.jobs <- g
		}
	}
	return <-done
}

func (t *threads) close() {
	close(t.jobs)
	t.wg.Wait()
}

// asUser runs f with the file-system identity of a user, on the calling launcher thread alone: what f opens or makes is
// opened and made by that user. Go's own setuid functions change every thread, so these are raw system calls.
func (k *Keeper) asUser(th *thread, id wire.Identity, groups []uint32, f func() error) error {
	if !k.root || id.UID == 0 {
		return f()
	}
	if err := setThreadGroups(groups); err != nil {
		return fmt.Errorf("take on groups of uid %d: %w", id.UID, err)
	}
	setThreadFS(syscall.SYS_SETFSGID, id.GID)
	setThreadFS(syscall.SYS_SETFSUID, id.UID)
	defer func() {
		setThreadFS(syscall.SYS_SETFSUID, 0)
		setThreadFS(syscall.SYS_SETFSGID, 0)
		err := setThreadGroups(nil)
		// A thread that cannot come back must not serve anybody else.
		if uid := setThreadFS(syscall.SYS_SETFSUID, ^uint32(0)); err != nil || uid != 0 {
			th.spoil(errors.Join(fmt.Errorf("thread stays uid %d", uid), err))
		}
	}()
	if uid := setThreadFS(syscall.SYS_SETFSUID, ^uint32(0)); uid != id.UID {
		return fmt.Errorf("take on uid %d: still %d", id.UID, uid)
	}
	return f()
}

// setThreadFS sets the thread's file-system uid or gid and returns the one before; an impossible id only asks.
func setThreadFS(call uintptr, id uint32) uint32 {
	old, _, _ := syscall.RawSyscall(call, uintptr(id), 0, 0)
	return uint32(old)
}

func setThreadGroups(groups []uint32) error {
	var p unsafe.Pointer
	if len(groups) > 0 {
		p = unsafe.Pointer(&groups[0])
	}
	_, _, errno := syscall.RawSyscall(syscall.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0)
	if errno != 0 {
		return errno
	}
	return nil
}
