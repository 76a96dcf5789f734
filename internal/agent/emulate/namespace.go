package emulate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Isolation is how an emulated node is set apart from the machine.
type Isolation int

// The kinds, the best first.
const (
	Namespaces     Isolation = iota // UTS and mount namespaces
	UserNamespaces                  // the same, inside a user namespace: what an ordinary user may have on most machines
	None                            // the nodes share the machine's name and hosts file
)

// attr returns the attributes of a process that is to be born isolated. It is a leader of its own session, so that
// nothing meant for a terminal reaches it.
func (i Isolation) attr() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	switch i {
	case Namespaces:
		// Unsharing mounts makes the whole tree private first, so that nothing mounted inside is seen outside.
		a.Unshareflags = syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS
	case UserNamespaces:
		a.Cloneflags = syscall.CLONE_NEWUSER
		a.Unshareflags = syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN} // kept through exec, dropped by Enter
	case None:
	}
	return a
}

// Best finds the best isolation this process may give, by trying. probe is a program that calls Enter and ends.
func Best(ctx context.Context, probe func(hosts string) *exec.Cmd, hosts string) (Isolation, error) {
	var last error
	for _, i := range []Isolation{Namespaces, UserNamespaces} {
		if i == UserNamespaces && os.Geteuid() == 0 {
			continue // root without namespaces is in a container that does not want any
		}
		cmd := probe(hosts)
		cmd.SysProcAttr = i.attr()
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		out, err := run(ctx, cmd)
		cancel()
		if err == nil {
			return i, nil
		}
		last = fmt.Errorf("%w %s", err, out)
	}
	return None, last
}

func run(ctx context.Context, cmd *exec.Cmd) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill() // it may have ended
		}
	})
	defer stop()
	return cmd.CombinedOutput()
}

// Enter makes the namespaces this process was born into those of a node: its host name, and the hosts file that names
// all.
func Enter(hostname, hosts string) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s on /etc/hosts: %w", hosts, err)
	}
	// Children of an ordinary user have no business with the right to mount.
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0)
	if errno != 0 && errno != unix.EINVAL { // EINVAL: a kernel that has none
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
