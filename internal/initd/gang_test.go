package initd

import (
	"net"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// TestPeersPatience: a container on another node that never answers is given up, and the error tells which and how
// long.
func TestPeersPatience(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close() // nobody listens there any more
	g := &wire.Gang{
		Peers: []wire.Peer{{Node: "n1"}, {Node: "n2", Addr: "127.0.0.1", Port: port}},
		Seed:  make([]byte, 32), Patience: 200 * time.Millisecond,
	}
	_, err = meetPeers(t.Context(), g, func(string, bool) {})
	if err == nil || !strings.Contains(err.Error(), "the container on n2 does not answer") ||
		!strings.Contains(err.Error(), "timers.container_wait") {
		t.Errorf("%v", err)
	}
	if patienceOf(&wire.Gang{}) != peersTimeout {
		t.Error("without a word there is no limit")
	}
}
