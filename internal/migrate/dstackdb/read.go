package dstackdb

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/migrate/inventory"
)

// Read reads what a server holds. database is a file or a URL; keys open what is sealed.
func Read(ctx context.Context, database string, keys Keys) (*inventory.Inventory, error) {
	s, err := open(ctx, database)
	if err != nil {
		return nil, err
	}
	r := &reader{source: s, keys: keys, projects: map[string]int{}, users: map[string]string{}, out: &inventory.Inventory{
		Users: []inventory.User{}, Projects: []inventory.Project{}, Fleets: []inventory.Fleet{}, Left: []inventory.Left{},
	}}
	for _, part := range []func(context.Context) error{
		r.schema, r.readUsers, r.readProjects, r.members, r.secrets, r.fleets, r.left,
	} {
		if err := part(ctx); err != nil {
			_ = s.close()
			return nil, err
		}
	}
	r.sort()
	return r.out, s.close()
}

type reader struct {
	*source
	keys     Keys
	users    map[string]string // names by id
	projects map[string]int    // places in out.Projects by id
	out      *inventory.Inventory
}

// schema makes sure that this is the database of a dstack server.
func (r *reader) schema(ctx context.Context) error {
	rows, err := r.read(ctx, "alembic_version", "version_num")
	if err != nil {
		return core.Errorf(core.Invalid, "%s cannot be read as a database: %v", r.name, err)
	}
	users, err := r.texts(ctx, "SELECT COUNT(*) FROM users")
	if err != nil || len(rows) == 0 || len(users) == 0 {
		return core.Errorf(core.Invalid, "%s is not the database of a dstack server: it has no tables alembic_version and "+
			"users", r.name)
	}
	r.out.Schema = rows[0]["version_num"]
	return nil
}

func (r *reader) readUsers(ctx context.Context) error {
	rows, err := r.read(ctx, "users", "id", "name", "token", "global_role", "email", "active", "deleted",
		"ssh_private_key")
	if err != nil {
		return err
	}
	keys, err := r.read(ctx, "user_public_keys", "user_id", "name", "key")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.yes("deleted") || !isID(row.id("id")) {
			continue
		}
		u := inventory.User{
			Name: row["name"], Admin: strings.EqualFold(row["global_role"], "admin"), Email: row["email"],
			Inactive: !row.yes("active"), SSHKey: row["ssh_private_key"],
		}
		if u.Token, err = r.keys.open(row["token"]); err != nil {
			u.Token, u.Fault = "", err.Error()
		}
		for _, k := range keys {
			if k.id("user_id") == row.id("id") {
				u.PublicKeys = append(u.PublicKeys, named(k["key"], k["name"]))
			}
		}
		r.users[row.id("id")] = u.Name
		r.out.Users = append(r.out.Users, u)
	}
	return nil
}

// named gives a public key the name that its user chose as its comment.
func named(key, name string) string {
	f := strings.Fields(key)
	if name == "" || len(f) < 2 {
		return strings.TrimSpace(key)
	}
	return f[0] + " " + f[1] + " " + strings.Join(strings.Fields(name), " ")
}

func (r *reader) readProjects(ctx context.Context) error {
	rows, err := r.read(ctx, "projects", "id", "name", "owner_id", "deleted", "is_public")
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.yes("deleted") {
			continue
		}
		r.projects[row.id("id")] = len(r.out.Projects)
		r.out.Projects = append(r.out.Projects, inventory.Project{
			Name: row["name"], Owner: r.users[row.id("owner_id")], Public: row.yes("is_public"),
		})
	}
	return nil
}

// project finds the project that a row belongs to; nil: it was deleted.
func (r *reader) project(row row) *inventory.Project {
	if i, ok := r.projects[row.id("project_id")]; ok {
		return &r.out.Projects[i]
	}
	return nil
}

func (r *reader) members(ctx context.Context) error {
	rows, err := r.read(ctx, "members", "project_id", "user_id", "project_role")
	if err != nil {
		return err
	}
	for _, row := range rows {
		user, p := r.users[row.id("user_id")], r.project(row)
		if user != "" && p != nil {
			p.Members = append(p.Members, inventory.Member{User: user, Role: strings.ToLower(row["project_role"])})
		}
	}
	return nil
}

func (r *reader) secrets(ctx context.Context) error {
	rows, err := r.read(ctx, "secrets", "project_id", "name", "value")
	if err != nil {
		return err
	}
	for _, row := range rows {
		p := r.project(row)
		if p == nil {
			continue
		}
		s := inventory.Secret{Name: row["name"]}
		if s.Value, err = r.keys.open(row["value"]); err != nil {
			s.Value, s.Fault = "", err.Error()
		}
		p.Secrets = append(p.Secrets, s)
	}
	return nil
}

// fleets takes those of SSH hosts; the others have machines of clouds.
func (r *reader) fleets(ctx context.Context) error {
	rows, err := r.read(ctx, "fleets", "project_id", "name", "deleted", "spec")
	if err != nil {
		return err
	}
	for _, row := range rows {
		p := r.project(row)
		if row.yes("deleted") || p == nil {
			continue
		}
		var spec struct {
			Configuration json.RawMessage `json:"configuration"`
		}
		var kind struct {
			SSH json.RawMessage `json:"ssh_config"`
		}
		err := json.Unmarshal([]byte(row["spec"]), &spec)
		if err == nil {
			err = json.Unmarshal(spec.Configuration, &kind)
		}
		switch {
		case err != nil:
			r.leave("fleet", p.Name, row["name"], "its record cannot be read")
		case len(kind.SSH) == 0 || string(kind.SSH) == "null":
			r.leave("fleet", p.Name, row["name"], "its machines are made by a cloud backend")
		default:
			r.out.Fleets = append(r.out.Fleets, inventory.Fleet{
				Project: p.Name, Name: row["name"], Configuration: spec.Configuration,
			})
		}
	}
	return nil
}

func (r *reader) leave(kind, project, name, why string) {
	r.out.Left = append(r.out.Left, inventory.Left{Kind: kind, Project: project, Name: name, Why: why})
}

// ended are the states of runs that are over.
var ended = []string{"done", "failed", "terminated"}

// left lists what stays behind.
func (r *reader) left(ctx context.Context) error {
	for _, t := range []struct{ table, kind, name, why string }{
		{"backends", "backend", "type", "there are no cloud backends; nodes join, or are fleets of SSH hosts"},
		{"volumes", "volume", "name", "network volumes belong to a cloud backend; paths of nodes are mounted as they are"},
		{"gateways", "gateway", "name", "gateways belong to a cloud backend"},
		{"runs", "run", "run_name", "it goes on at the other server, or is applied here again; its history stays there"},
		{"repos", "repo", "name", "clients register it again: dstack init"},
	} {
		rows, err := r.read(ctx, t.table, "project_id", t.name, "deleted", "status")
		if err != nil {
			return err
		}
		for _, row := range rows {
			p := r.project(row)
			if p == nil || row.yes("deleted") || t.kind == "run" && slices.Contains(ended, strings.ToLower(row["status"])) {
				continue
			}
			r.leave(t.kind, p.Name, strings.ToLower(row[t.name]), t.why)
		}
	}
	return nil
}

// sort has the same database always give the same.
func (r *reader) sort() {
	o := r.out
	slices.SortFunc(o.Users, func(a, b inventory.User) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(o.Projects, func(a, b inventory.Project) int { return strings.Compare(a.Name, b.Name) })
	for i := range o.Projects {
		p := &o.Projects[i]
		slices.SortFunc(p.Members, func(a, b inventory.Member) int { return strings.Compare(a.User, b.User) })
		slices.SortFunc(p.Secrets, func(a, b inventory.Secret) int { return strings.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(o.Fleets, func(a, b inventory.Fleet) int {
		return strings.Compare(a.Project+"/"+a.Name, b.Project+"/"+b.Name)
	})
	slices.SortFunc(o.Left, func(a, b inventory.Left) int {
		return strings.Compare(a.Kind+"/"+a.Project+"/"+a.Name, b.Kind+"/"+b.Project+"/"+b.Name)
	})
}
