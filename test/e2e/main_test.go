//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// The users scripts/prereqs.sh adds.
const (
	alice = "bireme-t1" // also in group bireme-t
	bob   = "bireme-t2"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "test/e2e: needs root: it runs jobs as other users and in cgroups")
		os.Exit(1)
	}
	if _, err := cluster.Bin(); err != nil {
		fmt.Fprintln(os.Stderr, "test/e2e:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// write makes a file of a test and gives its path.
func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// wants checks that a text holds all of some parts.
func wants(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%s", what, p, text)
		}
	}
}

// refused checks that a command failed with a status and said why.
func refused(t *testing.T, r cluster.Result, code int, says ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("want exit status %d: %v", code, r)
	}
	wants(t, r.Line, r.Out+r.Err, says...)
}

var lastPort atomic.Int32

// freePort finds a port of 127.0.0.1 nobody listens on, below those that outgoing connections take.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		port := 20000 + os.Getpid()%10000 + int(lastPort.Add(1)) // tests run beside each other: none is given twice
		if port >= 32000 {
			break
		}
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err == nil {
			defer l.Close()
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
