package client

import (
	"context"
	"io"
	"net"
	"os"
	"syscall"
)

// dialPlain opens a connection that its caller's thread reads and writes itself. A command that makes one call has nothing
// else to do meanwhile: the runtime's poller and the threads it starts would cost more than the call.
func (s *socketTrip) dialPlain(ctx context.Context) (conn io.ReadWriteCloser, cut func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, s.dialError("socket", err)
	}
	if err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: s.path}); err == nil { // at once, or there are too many before us
		err = syscall.SetNonblock(fd, false)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, nil, s.dialError("connect", err)
	}
	f := os.NewFile(uintptr(fd), s.path)
	return f, func() {
		if raw, err := f.SyscallConn(); err == nil { // to close it would not wake a reader
			_ = raw.Control(func(fd uintptr) { _ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) })
		}
	}, nil
}

func (s *socketTrip) dialError(call string, err error) error {
	return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: s.path, Net: "unix"}, Err: os.NewSyscallError(call, err)}
}
