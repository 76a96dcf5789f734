// Package secrets answers dstack's calls on the secrets of a project.
package secrets

import (
	"errors"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/vault"
)

// Secrets answers calls on secrets.
type Secrets struct {
	*call.Base
	vault *vault.Vault
}

// New makes the handlers.
func New(b *call.Base, v *vault.Vault) *Secrets { return &Secrets{Base: b, vault: v} }

// Rows lists the routes.
func (a *Secrets) Rows() []front.Row {
	const base = "/api/project/{project}/secrets"
	const object = "secrets of {project}"
	return []front.Row{
		{Path: base + "/list", Level: front.Manager, Handle: front.NoBody(a.list)},
		{
			Path: base + "/get", Level: front.Manager, Scope: core.ScopeSubmit, Action: "secret.read", Object: object,
			Handle: front.Body(a.get),
		},
		{
			Path: base + "/create_or_update", Level: front.Manager, Scope: core.ScopeSubmit, Action: "secret.set",
			Object: object, Handle: front.Body(a.set),
		},
		{
			Path: base + "/delete", Level: front.Manager, Scope: core.ScopeSubmit, Action: "secret.delete", Object: object,
			Handle: front.Body(a.remove),
		},
	}
}

// may refuses managers where only administrators of the project handle its secrets.
func (a *Secrets) may(c *front.Call) error {
	if c.Role != core.RoleAdmin && !a.Settings().Dstack.ManagersManageSecrets {
		return front.ErrForbidden()
	}
	return nil
}

func idOf(s *core.Credential) string { return wire.UUID(wire.KindSecret, s.Owner+"/"+s.Name) }

func (a *Secrets) list(c *front.Call) (any, error) {
	if err := a.may(c); err != nil {
		return nil, err
	}
	out := []wire.Secret{}
	for _, s := range c.Snap.CredentialsOf(core.SecretCredential, string(c.Project.Name)) {
		out = append(out, wire.Secret{ID: idOf(s), Name: s.Name})
	}
	return out, nil
}

type getBody struct {
	Name string `json:"name" in:"required"`
}

func (a *Secrets) get(c *front.Call, in *getBody) (any, error) {
	if err := a.may(c); err != nil {
		return nil, err
	}
	c.About("secret", string(c.Project.Name)+"/"+in.Name)
	s, ok := c.Snap.Credential(core.SecretCredential, string(c.Project.Name), in.Name)
	if !ok {
		return nil, front.ErrNotExists()
	}
	plain, err := a.vault.Open(s)
	if err != nil {
		return nil, err
	}
	value := string(plain)
	return wire.Secret{ID: idOf(s), Name: s.Name, Value: &value}, nil
}

type setBody struct {
	Name  string `json:"name" in:"required"`
	Value string `json:"value" in:"required"`
}

// maxValue is the longest value of a secret, in characters.
const maxValue = 5000

func (a *Secrets) set(c *front.Call, in *setBody) (any, error) {
	if err := a.may(c); err != nil {
		return nil, err
	}
	c.About("secret", string(c.Project.Name)+"/"+in.Name)
	if n := len([]rune(in.Value)); n == 0 || n > maxValue {
		return nil, front.Errorf("Secret value should be 1 to %d characters long", maxValue)
	}
	s := &core.Credential{Kind: core.SecretCredential, Owner: string(c.Project.Name), Name: in.Name}
	if err := a.vault.Seal(s, []byte(in.Value)); err != nil {
		return nil, err
	}
	_, err := engine.Do(c.Context(), a.Engine, &state.PutCredential{
		By: c.Identity, Credential: s, Managers: a.Settings().Dstack.ManagersManageSecrets,
	})
	var e *core.Error
	if errors.As(err, &e) && e.Reason == "invalid_name" {
		return nil, front.Errorf("Secret name should match regex '^[A-Za-z0-9-_]{1,200}$'")
	}
	if err != nil {
		return nil, err
	}
	return wire.Secret{ID: idOf(s), Name: s.Name, Value: &in.Value}, nil
}

type deleteBody struct {
	SecretsNames []string `json:"secrets_names" in:"required,max=1000"`
}

// remove deletes secrets: all that are named, or none if one of them is not there.
func (a *Secrets) remove(c *front.Call, in *deleteBody) (any, error) {
	if err := a.may(c); err != nil {
		return nil, err
	}
	c.About("secrets", strings.Join(in.SecretsNames, ", "))
	var missing []string
	for _, name := range in.SecretsNames {
		if _, ok := c.Snap.Credential(core.SecretCredential, string(c.Project.Name), name); !ok {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, core.Errorf(core.NotFound, "Secrets not found: %s", strings.Join(missing, ", "))
	}
	for _, name := range in.SecretsNames {
		_, err := engine.Do(c.Context(), a.Engine, &state.DropCredential{
			By:       c.Identity,
			Key:      core.CredentialKey{Kind: core.SecretCredential, Owner: string(c.Project.Name), Name: name},
			Managers: a.Settings().Dstack.ManagersManageSecrets,
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
