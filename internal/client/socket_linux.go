package client

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
)

// dialPlain opens a connection that its caller's thread reads and writes itself. A command that makes one call has
// nothing else to do meanwhile: the runtime's poller and the threads it starts would cost more than the call.
func (s *socketTrip) dialPlain(ctx context.Context) (conn io.ReadWriteCloser, cut func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, s.dialError("socket", err)
	}
	// at once, or there are too many before us
	if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: s.path}); err == nil {
		err = syscall.SetNonblock(fd, false)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, nil, s.dialError("connect", err)
	}
	if err := s.check(fd); err != nil {
		_ = syscall.Close(fd)
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), s.path)
	return f, func() {
		if raw, err := f.SyscallConn(); err == nil { // to close it would not wake a reader
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}, nil
}

// check asks the kernel who listens.
func (s *socketTrip) check(fd int) error {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return s.dialError("getsockopt", err)
	}
	uid := cred.Uid
	if uid == overflowUID && mappedRoot() { // root, if the path is: see pathOwner
		if own, err := pathOwner(s.path, uint32(os.Geteuid())); err == nil && own == 0 {
			return nil
		}
	}
	if err := checkListener(s.path, uid); err != nil {
		return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: s.path, Net: "unix"}, Err: err}
	}
	return nil
}

// checkConn is check for a connection of the runtime's.
func (s *socketTrip) checkConn(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var bad error
	if err := raw.Control(func(fd uintptr) { bad = s.check(int(fd)) }); err != nil {
		return err
	}
	return bad
}

func (s *socketTrip) dialError(call string, err error) error {
	return &net.OpError{
		Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: s.path, Net: "unix"},
		Err: os.NewSyscallError(call, err),
	}
}
