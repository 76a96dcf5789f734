package client

import (
	"context"
	"fmt"
	"net/url"

	"bireme.dev/bireme/internal/core"
)

// Secret is a value that runs of a project can use. Lists leave the value out.
type Secret struct {
	Name    string        `json:"name"`
	Value   string        `json:"value,omitempty"`
	By      core.UserName `json:"by,omitempty"` // who last changed it
	Created core.Time     `json:"created"`
	Changed core.Time     `json:"changed,omitempty"`
}

// String keeps the value out of whatever prints a secret.
func (s Secret) String() string { return fmt.Sprintf("secret %s", s.Name) }

// GoString is String for %#v.
func (s Secret) GoString() string { return s.String() }

// SecretList answers GET /api/v1/projects/{project}/secrets.
type SecretList struct {
	Secrets []Secret `json:"secrets"`
}

// SecretValue is sent to set a secret.
type SecretValue struct {
	Value string `json:"value"`
}

// String keeps the value out of whatever prints it.
func (SecretValue) String() string { return "a secret's value" }

// GoString is String for %#v.
func (v SecretValue) GoString() string { return v.String() }

// Secrets are the secrets of one project.
type Secrets struct {
	Client  *Client
	Project core.ProjectName
}

func (s *Secrets) path() string {
	return api + "/projects/" + url.PathEscape(string(s.Project)) + "/secrets"
}

func (s *Secrets) at(name string) string { return s.path() + "/" + url.PathEscape(name) }

// List lists them without their values.
func (s *Secrets) List(ctx context.Context) (*SecretList, error) {
	return get[SecretList](ctx, s.Client, s.path(), nil)
}

// Get reads one with its value.
func (s *Secrets) Get(ctx context.Context, name string) (*Secret, error) {
	return get[Secret](ctx, s.Client, s.at(name), nil)
}

// Set makes one, or gives it another value.
func (s *Secrets) Set(ctx context.Context, name, value string) error {
	return s.Client.do(ctx, call{method: "PUT", path: s.at(name), body: SecretValue{Value: value}, again: always}, nil)
}

// Delete deletes one.
func (s *Secrets) Delete(ctx context.Context, name string) error {
	return s.Client.do(ctx, call{method: "DELETE", path: s.at(name)}, nil)
}
