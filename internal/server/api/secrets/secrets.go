package secrets

import (
	"context"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/vault"
)

// Secrets shows and changes secrets.
type Secrets struct {
	*call.Base
	Vault *vault.Vault
}

// may refuses those who do not handle a project's secrets: its administrators do, and its managers where the settings
// say so.
func (a *Secrets) may(who *call.Caller, snap *state.Snapshot, p core.ProjectName) error {
	if who.Admin {
		return nil
	}
	role := snap.Role(who.User, p)
	switch {
	case role == core.RoleNone: // whether it is there is not told
		return core.Errorf(core.NotFound, "there is no project %q", p).Because("invalid_project")
	case who.Plain:
	case role == core.RoleAdmin, role == core.RoleManager && a.Settings().Dstack.ManagersManageSecrets:
		return nil
	}
	return core.Errorf(core.Denied, "secrets of project %s are for its administrators", p).Because("access_denied")
}

// Of lists the secrets of a project.
func (a *Secrets) Of(who *call.Caller, snap *state.Snapshot, p core.ProjectName) ([]*core.Credential, error) {
	if err := a.may(who, snap, p); err != nil {
		return nil, err
	}
	return snap.CredentialsOf(core.SecretCredential, string(p)), nil
}

// Open reads a secret with its value.
func (a *Secrets) Open(who *call.Caller, snap *state.Snapshot, p core.ProjectName, name string) (
	*core.Credential, string, error,
) {
	if err := a.may(who, snap, p); err != nil {
		return nil, "", err
	}
	c, ok := snap.Credential(core.SecretCredential, string(p), name)
	if !ok {
		return nil, "", core.Errorf(core.NotFound, "project %s has no secret %.80q", p, name).Because("invalid_secret")
	}
	plain, err := a.Vault.Open(c)
	return c, string(plain), err
}

// maxValue is the longest value of a secret, in characters.
const maxValue = 5000

// Put makes a secret, or gives it another value.
func (a *Secrets) Put(ctx context.Context, who *call.Caller, p core.ProjectName, name, value string) error {
	if n := len([]rune(value)); n == 0 || n > maxValue {
		return core.Errorf(core.Invalid, "the value of a secret has 1 to %d characters, not %d", maxValue, n).
			Because("invalid_value")
	}
	c := &core.Credential{Kind: core.SecretCredential, Owner: string(p), Name: name}
	if err := a.Vault.Seal(c, []byte(value)); err != nil {
		return err
	}
	_, err := engine.Do(ctx, a.Engine, &state.PutCredential{
		By: who.Identity, Credential: c, Managers: a.Settings().Dstack.ManagersManageSecrets,
	})
	return err
}

// Drop deletes a secret.
func (a *Secrets) Drop(ctx context.Context, who *call.Caller, p core.ProjectName, name string) error {
	_, err := engine.Do(ctx, a.Engine, &state.DropCredential{
		By: who.Identity, Key: core.CredentialKey{Kind: core.SecretCredential, Owner: string(p), Name: name},
		Managers: a.Settings().Dstack.ManagersManageSecrets,
	})
	return err
}

func shown(c *core.Credential, value string) client.Secret {
	return client.Secret{Name: c.Name, Value: value, By: c.By, Created: c.Created, Changed: c.Changed}
}

func (a *Secrets) List(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	list, err := a.Of(who, snap, core.ProjectName(r.PathValue("project")))
	if err != nil {
		return nil, err
	}
	out := &client.SecretList{Secrets: []client.Secret{}}
	for _, c := range list {
		out.Secrets = append(out.Secrets, shown(c, ""))
	}
	return out, nil
}

func (a *Secrets) Show(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	snap, err := a.Snapshot()
	if err != nil {
		return nil, err
	}
	c, value, err := a.Open(who, snap, core.ProjectName(r.PathValue("project")), r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	out := shown(c, value)
	return &out, nil
}

func (a *Secrets) Set(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	var in client.SecretValue
	if err := call.Decode(r, &in); err != nil {
		return nil, err
	}
	p := core.ProjectName(r.PathValue("project"))
	return call.OK{}, a.Put(r.Context(), who, p, r.PathValue("name"), in.Value)
}

func (a *Secrets) Delete(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	p := core.ProjectName(r.PathValue("project"))
	return call.OK{}, a.Drop(r.Context(), who, p, r.PathValue("name"))
}
