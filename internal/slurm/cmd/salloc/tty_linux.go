package salloc

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the one that the command has while it runs; nil: there is none.
type terminal struct{ fd int }

// terminal gives the caller's terminal to the command, in a process group of its own: Ctrl-C is then the command's.
func (s *run) terminal(c *exec.Cmd) *terminal {
	f, ok := s.w.In.(*os.File)
	if !ok {
		return nil
	}
	fd := int(f.Fd())
	if front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || front != unix.Getpgrp() {
		return nil
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: fd}
	return &terminal{fd}
}

// back takes the terminal again when the command has ended.
func (t *terminal) back() {
	if t == nil {
		return
	}
	signal.Ignore(syscall.SIGTTOU) // which one in the background who takes it is sent
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, unix.Getpgrp()) // it may be gone
}
