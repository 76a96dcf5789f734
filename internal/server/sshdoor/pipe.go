package sshdoor

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Pipe makes a connection within the process. Unlike net.Pipe it holds some bytes: the two ends of an SSH connection
// both write before they read.
func Pipe() (near, far net.Conn, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	var ends [2]net.Conn
	var errs [2]error
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "pipe")
		ends[i], errs[i] = net.FileConn(f)
		_ = f.Close() // the connection has a copy
	}
	if err := errors.Join(errs[:]...); err != nil {
		for _, c := range ends {
			if c != nil {
				_ = c.Close()
			}
		}
		return nil, nil, err
	}
	return ends[0], ends[1], nil
}
