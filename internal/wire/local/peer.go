package local

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// Peer returns the credentials of the process that connected to the other end of c, as the kernel recorded them.
func Peer(c net.Conn) (*unix.Ucred, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(
			int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return nil, err
	}
	return cred, credErr
}
