package agent

import "testing"

// Ports of containers are open to the node alone, unless the settings say otherwise.
func TestPublishAt(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ how, addr, want string }{
		{"", "10.0.0.7", "127.0.0.1"}, // a server that says nothing
		{"loopback", "10.0.0.7", "127.0.0.1"},
		{"network", "10.0.0.7", "10.0.0.7"},
		{"network", "lab.example.com", "127.0.0.1"},
		{"network", "", "127.0.0.1"},
		{"all", "10.0.0.7", ""},
	} {
		a := &Agent{opt: Options{Addr: tc.addr}}
		a.settings.Publish = tc.how
		if got := a.publishAt(); got != tc.want {
			t.Errorf("%q at %q: %q, want %q", tc.how, tc.addr, got, tc.want)
		}
	}
}
