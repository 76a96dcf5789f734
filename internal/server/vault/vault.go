package vault

import (
	"encoding/base64"
	"fmt"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// Sealer closes and opens texts under names; a ring of keys is one.
type Sealer interface {
	Seal(name string, plain []byte) ([]byte, error)
	Unseal(name string, sealed []byte) ([]byte, error)
	Fresh(sealed []byte) bool // it is under the present key
}

// Vault opens and closes credentials. It is safe for concurrent use.
type Vault struct{ keys Sealer }

// New makes a vault of a ring of keys.
func New(keys Sealer) *Vault { return &Vault{keys: keys} }

// Seal puts a text into a credential, whose key must be set.
func (v *Vault) Seal(c *core.Credential, plain []byte) error {
	sealed, err := v.keys.Seal(c.Key().SealName(), plain)
	if err != nil {
		return err
	}
	c.Sealed = base64.StdEncoding.EncodeToString(sealed)
	return nil
}

// Open gives the text that a credential holds.
func (v *Vault) Open(c *core.Credential) ([]byte, error) {
	sealed, err := base64.StdEncoding.DecodeString(c.Sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Key().SealName(), err)
	}
	return v.keys.Unseal(c.Key().SealName(), sealed)
}

// Secrets opens every secret of a project, by name.
func (v *Vault) Secrets(snap *state.Snapshot, project core.ProjectName) (map[string]string, error) {
	out := map[string]string{}
	for _, c := range snap.CredentialsOf(core.SecretCredential, string(project)) {
		plain, err := v.Open(c)
		if err != nil {
			return nil, err
		}
		out[c.Name] = string(plain)
	}
	return out, nil
}

// Reseal seals what a credential holds under another key than the present one again; nil: it is under the present one.
func Reseal(keys Sealer, c *core.Credential) (*state.ResealCredential, error) {
	if c.Sealed == "" {
		return nil, nil
	}
	v := &Vault{keys: keys}
	sealed, err := base64.StdEncoding.DecodeString(c.Sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Key().SealName(), err)
	}
	if keys.Fresh(sealed) {
		return nil, nil
	}
	plain, err := v.Open(c)
	if err != nil {
		return nil, err
	}
	next := *c
	if err := v.Seal(&next, plain); err != nil {
		return nil, err
	}
	return &state.ResealCredential{Key: c.Key(), Old: c.Sealed, New: next.Sealed}, nil
}
