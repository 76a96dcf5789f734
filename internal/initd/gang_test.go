package initd

import (
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// TestPeersPatience: a container on another node that never answers is given up, and the error tells which and how
// long.
func TestPeersPatience(t *testing.T) {
	t.Parallel()
	const port = 1 // nobody listens there, and no other test will
	g := &wire.Gang{
		Peers: []wire.Peer{{Node: "n1"}, {Node: "n2", Addr: "127.0.0.1", Port: port}},
		Seed:  make([]byte, 32), Patience: 200 * time.Millisecond,
	}
	_, err := meetPeers(t.Context(), g, func(string, bool) {})
	if err == nil || !strings.Contains(err.Error(), "the container on n2 does not answer") ||
		!strings.Contains(err.Error(), "timers.container_wait") {
		t.Errorf("%v", err)
	}
	if patienceOf(&wire.Gang{}) != peersTimeout {
		t.Error("without a word there is no limit")
	}
}
