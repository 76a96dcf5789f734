package server

import (
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/fleet"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/vault"
)

// What was sealed before the key changed and comes to the engine after it is refused: it would be there under a key
// that nobody has any more.
func TestSealedWithAnOlderKeyIsRefused(t *testing.T) {
	t.Parallel()
	ring, err := seal.Open(filepath.Join(t.TempDir(), "key"), true)
	if err != nil {
		t.Fatal(err)
	}
	s := &sealCheck{}
	s.ring.Store(ring)
	c := &core.Credential{Kind: core.SecretCredential, Owner: "p", Name: "token"}
	if err := vault.New(ring).Seal(c, []byte("hunter2")); err != nil {
		t.Fatal(err)
	}
	env, err := fleet.SealEnv(ring, "f", []string{"A=b"})
	if err != nil {
		t.Fatal(err)
	}
	inputs := map[string]state.Input{
		"a credential":      &state.PutCredential{Credential: c},
		"a fleet's env":     &state.PutFleet{Fleet: &core.Fleet{Name: "f", Env: env}},
		"a fleet's SSH key": &state.PutFleet{Fleet: &core.Fleet{Keys: []core.FleetKey{{Sealed: env.Sealed}}}},
	}
	for name, in := range inputs {
		if err := s.check(in); err != nil {
			t.Errorf("%s under the present key: %v", name, err)
		}
	}
	next, err := ring.Add()
	if err != nil {
		t.Fatal(err)
	}
	if err := ring.Use(next); err != nil {
		t.Fatal(err)
	}
	for name, in := range inputs {
		if err := s.check(in); core.CodeOf(err) != core.Unavailable {
			t.Errorf("%s under an older key: %v", name, err)
		}
	}
	if err := s.check(&state.PutCredential{Credential: &core.Credential{}}); err != nil {
		t.Errorf("a credential without a text: %v", err)
	}
}
