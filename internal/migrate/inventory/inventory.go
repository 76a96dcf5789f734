// Package inventory says what another system's server holds, in the form that one program hands it to another: the
// reader of its database to the command that brings it here. It holds secrets in the clear.
package inventory

import "encoding/json"

// Inventory is what a dstack server holds.
type Inventory struct {
	Schema   string    `json:"schema,omitempty"` // version of its database
	Users    []User    `json:"users"`
	Projects []Project `json:"projects"`
	Fleets   []Fleet   `json:"fleets"`
	Left     []Left    `json:"left"` // what nobody takes over
}

// String keeps secrets out of whatever prints an Inventory.
func (i Inventory) String() string { return "what a dstack server holds" }

// GoString is String for %#v.
func (i Inventory) GoString() string { return i.String() }

// User is a user with what they log in by.
type User struct {
	Name       string   `json:"name"`
	Admin      bool     `json:"admin,omitempty"`
	Email      string   `json:"email,omitempty"`
	Inactive   bool     `json:"inactive,omitempty"`
	Token      string   `json:"token,omitempty"`
	SSHKey     string   `json:"ssh_key,omitempty"` // private
	PublicKeys []string `json:"public_keys,omitempty"`
	Fault      string   `json:"fault,omitempty"` // why the token cannot be read
}

// Project is a project with its members and secrets.
type Project struct {
	Name    string   `json:"name"`
	Owner   string   `json:"owner,omitempty"`
	Public  bool     `json:"public,omitempty"`
	Members []Member `json:"members,omitempty"`
	Secrets []Secret `json:"secrets,omitempty"`
}

// Member is a user's role in a project: admin, manager or user.
type Member struct {
	User string `json:"user"`
	Role string `json:"role"`
}

// Secret is a secret of a project.
type Secret struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Fault string `json:"fault,omitempty"` // why it cannot be read
}

// Fleet is a fleet of SSH hosts: its configuration as the client sent it, with keys.
type Fleet struct {
	Project       string          `json:"project"`
	Name          string          `json:"name"`
	Configuration json.RawMessage `json:"configuration"`
}

// Left is something that is not taken over, and why.
type Left struct {
	Kind    string `json:"kind"` // fleet, volume, gateway, run, backend, repo
	Project string `json:"project,omitempty"`
	Name    string `json:"name"`
	Why     string `json:"why"`
}
