package fleet

import (
	"encoding/base64"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/engine/state/fleets"
)

// Sealer closes and opens secrets under names; a ring of keys and the certificate authority are one.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
	Unseal(name string, sealed []byte) ([]byte, error)
}

// Resealer is a Sealer that knows which texts are under its present key.
type Resealer interface {
	Sealer
	Fresh(sealed []byte) bool
}

// SealEnv seals the variables of a fleet's agents.
func SealEnv(a Sealer, fleet string, env []string) (core.FleetEnv, error) {
	var e core.FleetEnv
	if len(env) == 0 {
		return e, nil
	}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		e.Names = append(e.Names, name)
	}
	sealed, err := a.Seal(envName(fleet), []byte(strings.Join(env, "\x00")))
	e.Sealed = base64.StdEncoding.EncodeToString(sealed)
	return e, err
}

// OpenEnv is the other way round.
func OpenEnv(a Sealer, fl *core.Fleet) ([]string, error) {
	sealed, err := base64.StdEncoding.DecodeString(fl.Env.Sealed)
	if err != nil {
		return nil, fmt.Errorf("variables of fleet %s: %w", fl.Name, err)
	}
	plain, err := a.Unseal(envName(fl.Name), sealed)
	if err != nil {
		return nil, err
	}
	return strings.Split(string(plain), "\x00"), nil
}

func envName(fleet string) string { return "fleet-env/" + fleet }

// KeyName is what a key is sealed under.
func KeyName(fingerprint string) string { return "ssh-key/" + fingerprint }

// Reseal seals what a fleet holds under another key than the present one again; nil: there is nothing of that kind.
// What agents were started with stays the same thing under its new name, so that none is started again.
func Reseal(a Resealer, fl *core.Fleet) (*state.ResealFleet, error) {
	in := &state.ResealFleet{Name: fl.Name, Texts: map[string]string{}, Runs: map[string]string{}}
	again := func(name, text string) error {
		if text == "" {
			return nil
		}
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return fmt.Errorf("fleet %s, %s: %w", fl.Name, name, err)
		}
		if a.Fresh(sealed) {
			return nil
		}
		plain, err := a.Unseal(name, sealed)
		if err != nil {
			return err
		}
		if sealed, err = a.Seal(name, plain); err != nil {
			return err
		}
		in.Texts[text] = base64.StdEncoding.EncodeToString(sealed)
		return nil
	}
	if err := again(envName(fl.Name), fl.Env.Sealed); err != nil {
		return nil, err
	}
	for i := range fl.Keys {
		if err := again(KeyName(fl.Keys[i].Fingerprint), fl.Keys[i].Sealed); err != nil {
			return nil, err
		}
	}
	if len(in.Texts) == 0 {
		return nil, nil
	}
	next, _ := fleets.Reseal(fl, in.Texts, in.Runs)
	for i := range fl.Hosts {
		in.Runs[Runs(fl, &fl.Hosts[i])] = Runs(next, &fl.Hosts[i])
	}
	return in, nil
}
