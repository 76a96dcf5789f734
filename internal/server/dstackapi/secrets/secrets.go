// Package secrets answers dstack's calls on the secrets of a project.
package secrets

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/secrets"
	"bireme.dev/bireme/internal/server/dstackapi/front"
)

// Secrets answers calls on secrets.
type Secrets struct{ native *secrets.Secrets }

// New makes the handlers.
func New(native *secrets.Secrets) *Secrets { return &Secrets{native} }

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

func idOf(project core.ProjectName, name string) string {
	return wire.UUID(wire.KindSecret, string(project)+"/"+name)
}

// inWords has refusals answered as clients expect them.
func inWords(err error) error {
	switch core.ReasonOf(err) {
	case "access_denied":
		return front.ErrForbidden()
	case "invalid_secret":
		return front.ErrNotExists()
	case "invalid_name":
		return front.Errorf("Secret name should match regex '^[A-Za-z0-9-_]{1,200}$'")
	}
	return err
}

func (a *Secrets) list(c *front.Call) (any, error) {
	list, err := a.native.Of(c.Caller, c.Snap, c.Project.Name)
	if err != nil {
		return nil, inWords(err)
	}
	out := []wire.Secret{}
	for _, s := range list {
		out = append(out, wire.Secret{ID: idOf(c.Project.Name, s.Name), Name: s.Name})
	}
	return out, nil
}

type getBody struct {
	Name string `json:"name" in:"required"`
}

func (a *Secrets) get(c *front.Call, in *getBody) (any, error) {
	c.About("secret", string(c.Project.Name)+"/"+in.Name)
	_, value, err := a.native.Open(c.Caller, c.Snap, c.Project.Name, in.Name)
	if err != nil {
		return nil, inWords(err)
	}
	return wire.Secret{ID: idOf(c.Project.Name, in.Name), Name: in.Name, Value: &value}, nil
}

type setBody struct {
	Name  string `json:"name" in:"required"`
	Value string `json:"value" in:"required"`
}

func (a *Secrets) set(c *front.Call, in *setBody) (any, error) {
	c.About("secret", string(c.Project.Name)+"/"+in.Name)
	if err := a.native.Put(c.Context(), c.Caller, c.Project.Name, in.Name, in.Value); err != nil {
		return nil, inWords(err)
	}
	return wire.Secret{ID: idOf(c.Project.Name, in.Name), Name: in.Name, Value: &in.Value}, nil
}

type deleteBody struct {
	SecretsNames []string `json:"secrets_names" in:"required,max=1000"`
}

// remove deletes secrets: all that are named, or none if one of them is not there.
func (a *Secrets) remove(c *front.Call, in *deleteBody) (any, error) {
	c.About("secrets", strings.Join(in.SecretsNames, ", "))
	list, err := a.native.Of(c.Caller, c.Snap, c.Project.Name)
	if err != nil {
		return nil, inWords(err)
	}
	there := map[string]bool{}
	for _, s := range list {
		there[s.Name] = true
	}
	var missing []string
	for _, name := range in.SecretsNames {
		if !there[name] {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		return nil, core.Errorf(core.NotFound, "Secrets not found: %s", strings.Join(missing, ", "))
	}
	for _, name := range in.SecretsNames {
		if err := a.native.Drop(c.Context(), c.Caller, c.Project.Name, name); err != nil {
			return nil, inWords(err)
		}
	}
	return nil, nil
}
