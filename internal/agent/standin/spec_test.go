package standin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// TestRights: what root inside keeps of the rights that engines give by default.
func TestRights(t *testing.T) {
	t.Parallel()
	all, caps := []string{"ALL"}, []string{"CHOWN", "SETUID"}
	for name, tc := range map[string]struct {
		c    wire.Container
		drop []string
		add  []string
	}{
		"an administrator's": {wire.Container{}, nil, nil},
		"a user's":           {wire.Container{Container: core.Container{Bounded: true}, Caps: caps}, all, caps},
		"a user's, on the node's network": {
			wire.Container{Container: core.Container{Bounded: true}, Caps: caps, Host: true}, all, caps,
		},
		"a user's with raw sockets": {
			wire.Container{Container: core.Container{Bounded: true}, NetRaw: true},
			all,
			[]string{"NET_RAW"},
		},
		"a user's that is privileged": {
			wire.Container{Container: core.Container{Bounded: true, Privileged: true}, Caps: caps}, nil, nil,
		},
		"as its submitter": {wire.Container{Container: core.Container{Submitter: true}, Caps: caps}, all, nil},
	} {
		s := &standIn{l: &wire.Launch{Container: &tc.c}, c: &tc.c}
		spec, err := s.spec()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.drop, spec.HostConfig.CapDrop); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(tc.add, spec.HostConfig.CapAdd); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if low := spec.HostConfig.Sysctls["net.ipv4.ip_unprivileged_port_start"]; (low == "1024") != (tc.drop != nil &&
			!tc.c.Host) {
			t.Errorf("%s: low ports begin at %q", name, low)
		}
	}
}
