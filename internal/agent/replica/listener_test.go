package replica

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A port of the node is a replica's only where its user listens: the agent is root, and would reach everybody's.
func TestListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := int32(l.Addr().(*net.TCPAddr).Port)
	me, err := uidOf(os.Getpid())
	if err != nil || me != uint32(os.Geteuid()) {
		t.Fatalf("this process is of uid %d, %v", me, err)
	}
	if err := listens(port, me); err != nil {
		t.Errorf("one's own port: %v", err)
	}
	if err := listens(port, me+1); err == nil || !strings.Contains(err.Error(), "somebody else's") {
		t.Errorf("another's port: %v", err)
	}
	if err := listens(boundOnly(t), me); err == nil || !strings.Contains(err.Error(), "nothing listens") {
		t.Errorf("a port that nobody listens on: %v", err)
	}
}

// boundOnly is a port that is taken, so that nobody else gets it meanwhile, and not listened on.
func boundOnly(t *testing.T) int32 {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	at, err2 := unix.Getsockname(fd)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return int32(at.(*unix.SockaddrInet4).Port)
}
