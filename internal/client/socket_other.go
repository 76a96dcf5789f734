//go:build !linux

package client

import (
	"context"
	"io"
	"net"
	"os"
)

func (s *socketTrip) dialPlain(ctx context.Context) (conn io.ReadWriteCloser, cut func(), err error) {
	return s.dial(ctx)
}

// checkConn goes by the path alone: nobody but root, the caller and the directory's owner can have put the socket
// there.
func (s *socketTrip) checkConn(net.Conn) error {
	if _, err := pathOwner(s.path, uint32(os.Geteuid())); err != nil {
		bad := &untrustedError{s.path + ": " + err.Error() + ": nothing was sent"}
		return &net.OpError{Op: "dial", Net: "unix", Addr: &net.UnixAddr{Name: s.path, Net: "unix"}, Err: bad}
	}
	return nil
}
