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
	for name, tc := range map[string]struct {
		c    wire.Container
		drop []string
	}{
		"an administrator's":              {wire.Container{}, nil},
		"a user's":                        {wire.Container{Container: core.Container{Bounded: true}}, []string{"NET_RAW"}},
		"a user's, on the node's network": {wire.Container{Container: core.Container{Bounded: true}, Host: true}, []string{"NET_RAW"}},
		"where the site gives them":       {wire.Container{Container: core.Container{Bounded: true}, NetRaw: true}, nil},
		"a user's that is privileged":     {wire.Container{Container: core.Container{Bounded: true, Privileged: true}}, nil},
		"as its submitter":                {wire.Container{Container: core.Container{Submitter: true}}, []string{"ALL"}},
	} {
		s := &standIn{l: &wire.Launch{Container: &tc.c}, c: &tc.c}
		spec, err := s.spec()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.drop, spec.HostConfig.CapDrop); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
