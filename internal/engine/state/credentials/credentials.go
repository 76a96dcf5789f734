package credentials

import (
	"maps"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/people"
)

// Set is the credentials at one moment. That of a snapshot never changes.
type Set struct {
	credentials map[core.CredentialKey]*core.Credential
}

// NewSet builds a set of stored records.
func NewSet(list []*core.Credential) Set {
	s := Set{credentials: map[core.CredentialKey]*core.Credential{}}
	for _, c := range list {
		s.credentials[c.Key()] = c
	}
	return s
}

// Credential finds a credential.
func (s *Set) Credential(kind core.CredentialKind, owner, name string) (*core.Credential, bool) {
	c, ok := s.credentials[core.CredentialKey{Kind: kind, Owner: owner, Name: name}]
	return c, ok
}

// CredentialsOf lists an owner's credentials of a kind, by name.
func (s *Set) CredentialsOf(kind core.CredentialKind, owner string) []*core.Credential {
	var out []*core.Credential
	for k, c := range s.credentials {
		if k.Kind == kind && k.Owner == owner {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *core.Credential) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Credentials lists all, by kind, owner and name.
func (s *Set) Credentials() []*core.Credential {
	return slices.SortedFunc(maps.Values(s.credentials), func(a, b *core.Credential) int {
		return strings.Compare(a.Key().SealName(), b.Key().SealName())
	})
}

// Journal is where a Registry records what it changes.
type Journal interface {
	Now() core.Time
	Changes() *core.Changes // of the batch under way
	Event(core.EventKind, core.Event)
}

// Registry is the one writer of a Set.
type Registry struct {
	s     *Set
	log   Journal
	owned bool // no snapshot shares the map
}

// NewRegistry makes the writer of a set.
func NewRegistry(s *Set, log Journal) *Registry { return &Registry{s: s, log: log} }

// Published notes that a snapshot has the set as it is: it is copied before its next change.
func (r *Registry) Published() { r.owned = false }

func (r *Registry) own() {
	if !r.owned {
		r.s.credentials, r.owned = maps.Clone(r.s.credentials), true
	}
}

// The commands.
type (
	// Put creates or replaces a credential.
	Put struct {
		By         core.Identity
		Credential *core.Credential
		New        bool // refuse if it is there
		Managers   bool // managers of the project may change its secrets, not its administrators alone
	}
	// Drop deletes a credential.
	Drop struct {
		By       core.Identity
		Key      core.CredentialKey
		Managers bool // as in Put
	}
	// Reseal replaces the sealed text of a credential, unless it has changed meanwhile.
	Reseal struct {
		Key      core.CredentialKey
		Old, New string
	}
)

// Put creates or replaces a credential.
func (r *Registry) Put(t *people.Tables, cmd *Put) error {
	in, by := cmd.Credential, cmd.By.User
	if err := authorize(t, cmd.By, in.Key(), cmd.Managers); err != nil {
		return err
	}
	old, there := r.s.credentials[in.Key()]
	if there && cmd.New {
		return core.Errorf(core.Conflict, "%s %s already exists", in.Kind, in.Name).Because("credential_exists")
	}
	if err := check(in); err != nil {
		return err
	}
	if n := len(r.s.CredentialsOf(in.Kind, in.Owner)); !there && n >= core.MaxCredentials {
		return core.Errorf(core.Exhausted, "%s has %d credentials of kind %s, the most there may be", in.Owner, n,
			in.Kind).Because("limit_credentials")
	}
	c := *in
	c.By, c.Created, c.Changed = by, r.log.Now(), 0
	done := "created"
	if there {
		c.Created, c.Changed, done = old.Created, r.log.Now(), "updated"
	}
	r.store(&c)
	r.event(by, c.Key(), done)
	return nil
}

func (r *Registry) store(c *core.Credential) {
	r.own()
	r.s.credentials[c.Key()] = c
	ch := r.log.Changes()
	ch.Credentials = append(without(ch.Credentials, c.Key()), c)
}

// Reseal replaces the sealed text of a credential.
func (r *Registry) Reseal(cmd *Reseal) {
	old, ok := r.s.credentials[cmd.Key]
	if !ok || old.Sealed != cmd.Old {
		return
	}
	c := *old
	c.Sealed = cmd.New
	r.store(&c)
	r.event("", cmd.Key, "resealed")
}

// Drop deletes a credential.
func (r *Registry) Drop(t *people.Tables, cmd *Drop) error {
	if err := authorize(t, cmd.By, cmd.Key, cmd.Managers); err != nil {
		return err
	}
	if _, ok := r.s.credentials[cmd.Key]; !ok {
		return core.Errorf(core.NotFound, "there is no %s %q", cmd.Key.Kind, cmd.Key.Name).Because("invalid_credential")
	}
	r.remove(cmd.By.User, cmd.Key)
	return nil
}

func (r *Registry) remove(by core.UserName, key core.CredentialKey) {
	r.own()
	delete(r.s.credentials, key)
	ch := r.log.Changes()
	ch.Credentials = without(ch.Credentials, key)
	ch.GoneCredentials = append(ch.GoneCredentials, key)
	r.event(by, key, "deleted")
}

// DeleteProject removes what a project has, and the access to its repositories.
func (r *Registry) DeleteProject(name core.ProjectName) {
	for _, c := range r.s.Credentials() {
		ofProject := c.Kind.OfProject() && c.Owner == string(name)
		if ofProject || c.Kind == core.RepoAccessCredential && strings.HasPrefix(c.Name, string(name)+"/") {
			r.remove("", c.Key())
		}
	}
}

// DeleteUser removes what a user has: keys, and access to repositories.
func (r *Registry) DeleteUser(name core.UserName) {
	for _, c := range r.s.Credentials() {
		if !c.Kind.OfProject() && c.Owner == string(name) {
			r.remove("", c.Key())
		}
	}
}

func without(list []*core.Credential, key core.CredentialKey) []*core.Credential {
	return slices.DeleteFunc(list, func(o *core.Credential) bool { return o.Key() == key })
}

// event tells of a change. Names of secrets are their project's business: the event is for who made it and for
// administrators.
func (r *Registry) event(by core.UserName, key core.CredentialKey, done string) {
	data := jsontext.AppendString([]byte(`{"kind":`), string(key.Kind))
	data = jsontext.AppendString(append(data, `,"owner":`...), key.Owner)
	data = jsontext.AppendString(append(data, `,"name":`...), key.Name)
	data = jsontext.AppendString(append(data, `,"done":`...), done)
	user := by
	if !key.Kind.OfProject() {
		user = core.UserName(key.Owner)
	}
	r.log.Event(core.CredentialChanged, core.Event{User: user, By: by, Data: append(data, '}')})
}

func check(c *core.Credential) error {
	switch {
	case len(c.Name) > core.MaxCredentialName:
		return core.Errorf(core.Invalid, "name: %d bytes are more than %d", len(c.Name), core.MaxCredentialName)
	case len(c.Info) > core.MaxCredentialInfo:
		return core.Errorf(core.TooLarge, "%s %s: %d bytes are more than %d", c.Kind, c.Name, len(c.Info),
			core.MaxCredentialInfo)
	case len(c.Sealed) > core.MaxCredentialSeal:
		return core.Errorf(core.TooLarge, "%s %s: %d bytes are more than %d", c.Kind, c.Name, len(c.Sealed),
			core.MaxCredentialSeal)
	}
	if c.Kind == core.SecretCredential && !isSecretName(c.Name) {
		return core.Errorf(core.Invalid, "secret name %.80q: expected 1 to 200 letters, digits, - and _", c.Name).
			Because("invalid_name")
	}
	return nil
}

func isSecretName(name string) bool {
	const most = 200
	for i := range len(name) {
		c := name[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= most
}
