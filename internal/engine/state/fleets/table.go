package fleets

import (
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
)

// Table is the fleets at one moment. That of a snapshot never changes.
type Table struct{ fleets map[string]*core.Fleet }

// NewTable builds a table of stored records.
func NewTable(list []*core.Fleet) Table {
	t := Table{fleets: map[string]*core.Fleet{}}
	for _, f := range list {
		t.fleets[f.Name] = f
	}
	return t
}

// Fleet finds a fleet.
func (t *Table) Fleet(name string) (*core.Fleet, bool) { f, ok := t.fleets[name]; return f, ok }

// Fleets lists them, by name.
func (t *Table) Fleets() []*core.Fleet { return named.Sorted(t.fleets) }

// FleetHost finds the host of a node; nil for a node that belongs to no fleet.
func (t *Table) FleetHost(n *core.Node) *core.FleetHost {
	f := t.fleets[n.Fleet]
	if f == nil {
		return nil
	}
	for i := range f.Hosts {
		if f.Hosts[i].Node == n.Name {
			return &f.Hosts[i]
		}
	}
	return nil
}

// FleetProject is the project whose jobs alone a node runs, as its fleet says; empty: those of all.
func (t *Table) FleetProject(n *core.Node) core.ProjectName {
	if f := t.fleets[n.Fleet]; f != nil {
		return f.Project
	}
	return ""
}

// Journal is where a Registry records what it changes.
type Journal interface {
	Changes() *core.Changes // of the batch under way
	Event(core.EventKind, core.Event)
}

// Registry is the one writer of a Table.
type Registry struct {
	t     *Table
	log   Journal
	owned bool // no snapshot shares the map
}

// NewRegistry makes the writer of a table.
func NewRegistry(t *Table, log Journal) *Registry { return &Registry{t: t, log: log} }

// Published notes that a snapshot has the table as it is: it is copied before its next change.
func (r *Registry) Published() { r.owned = false }

func (r *Registry) own() {
	if !r.owned {
		r.t.fleets, r.owned = maps.Clone(r.t.fleets), true
	}
}

// Store makes a record the present one of its fleet.
func (r *Registry) Store(f *core.Fleet, by core.UserName) {
	r.own()
	r.t.fleets[f.Name] = f
	c := r.log.Changes()
	c.Fleets = append(slices.DeleteFunc(c.Fleets, func(o *core.Fleet) bool { return o.Name == f.Name }), f)
	r.log.Event(core.FleetChanged,
		core.Event{By: by, Data: append(jsontext.AppendString([]byte(`{"fleet":`), f.Name), '}')})
}

// Delete removes a fleet.
func (r *Registry) Delete(f *core.Fleet) {
	r.own()
	delete(r.t.fleets, f.Name)
	c := r.log.Changes()
	c.Fleets = slices.DeleteFunc(c.Fleets, func(o *core.Fleet) bool { return o.Name == f.Name })
	c.GoneFleets = append(c.GoneFleets, f.Name)
	r.log.Event(core.FleetChanged,
		core.Event{Data: append(jsontext.AppendString([]byte(`{"gone":true,"fleet":`), f.Name), '}')})
}

// Authorize finds a fleet that a caller may change: an administrator, or a manager of its project. To a caller who may
// not see the fleet it does not exist.
func (r *Registry) Authorize(by core.Identity, name, what string,
	roleIn func(core.UserName, core.ProjectName) core.Role,
) (*core.Fleet, error) {
	f, ok := r.t.fleets[name]
	role := core.RoleNone
	if ok {
		role = roleIn(by.User, f.Project)
	}
	if by.Plain && role.Rank() > core.RoleUser.Rank() {
		role = core.RoleUser
	}
	switch {
	case !ok && by.Admin:
		return nil, core.Errorf(core.NotFound, "there is no fleet %q%s", name,
			named.Hint(name, r.t.fleets)).Because("invalid_fleet")
	case !ok || !f.SeenBy(by, role):
		return nil, core.Errorf(core.NotFound, "there is no fleet %q", name).Because("invalid_fleet")
	case by.Admin || f.Project != "" && role.Rank() >= core.RoleManager.Rank():
		return f, nil
	case f.Project != "":
		return nil, core.Errorf(core.Denied, "only a manager of project %s or an administrator %s fleet %s", f.Project, what,
			name).Because("access_denied")
	}
	return nil, people.AdminOnly(by, what+" fleets")
}
