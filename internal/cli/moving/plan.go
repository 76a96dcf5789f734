package moving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/migrate/inventory"
)

// plan is what an import does, in its order. Each step may be done again: what is there already is left alone.
type plan struct {
	c     *client.Client
	o     *importOptions
	inv   *inventory.Inventory
	rows  []Row
	steps []func(context.Context) error // of rows with the action take; nil for others
	ran   bool

	users    map[string]*core.User // that are here
	projects map[core.ProjectName]*core.Project
	tokens   map[core.UserName]int
	refused  map[string]bool // users and projects of the other server that conflict
}

func (p *plan) add(r Row, step func(context.Context) error) {
	p.rows, p.steps = append(p.rows, r), append(p.steps, step)
}

// changes counts what is to be done.
func (p *plan) changes() (n int) {
	for _, r := range p.rows {
		if r.Action == actTake {
			n++
		}
	}
	return n
}

// do does it. It ends at the first failure; the same command goes on from there.
func (p *plan) do(ctx context.Context) error {
	p.ran = true
	for i, step := range p.steps {
		if step == nil || p.rows[i].Action != actTake {
			continue
		}
		if err := step(ctx); err != nil {
			p.rows[i].Action, p.rows[i].Note = actFailed, err.Error()
			return fmt.Errorf("%s %s: %w; what came before it is taken over, and the same command goes on", p.rows[i].Kind,
				p.rows[i].Name, err)
		}
		p.rows[i].Action = actDone
	}
	return nil
}

// make compares what the other server holds with what is here.
func (p *plan) make(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	for i := range p.inv.Users {
		if err := p.user(ctx, &p.inv.Users[i]); err != nil {
			return err
		}
	}
	for i := range p.inv.Projects {
		if err := p.project(ctx, &p.inv.Projects[i]); err != nil {
			return err
		}
	}
	for i := range p.inv.Fleets {
		if err := p.fleet(ctx, &p.inv.Fleets[i]); err != nil {
			return err
		}
	}
	for _, l := range p.inv.Left {
		p.add(Row{l.Kind, l.Project, l.Name, actLeave, l.Why}, nil)
	}
	return nil
}

// look asks what is here.
func (p *plan) look(ctx context.Context) error {
	p.users, p.projects = map[string]*core.User{}, map[core.ProjectName]*core.Project{}
	p.tokens, p.refused = map[core.UserName]int{}, map[string]bool{}
	users, err := p.c.Users(ctx)
	if err != nil {
		return err
	}
	for i := range users.Users {
		p.users[string(users.Users[i].Name)] = &users.Users[i]
	}
	projects, err := p.c.Projects(ctx)
	if err != nil {
		return err
	}
	for i := range projects.Projects {
		p.projects[projects.Projects[i].Name] = &projects.Projects[i]
	}
	tokens, err := p.c.Tokens(ctx)
	if err != nil {
		return err
	}
	for i := range tokens.Tokens {
		if t := &tokens.Tokens[i]; t.Kind == "user" {
			p.tokens[t.User]++
		}
	}
	return nil
}

// user takes over a user with a token and keys.
func (p *plan) user(ctx context.Context, u *inventory.User) error {
	here := p.users[u.Name]
	name := core.UserName(u.Name)
	take := &client.TakeUser{Token: u.Token, SSHKey: u.SSHKey, PublicKeys: u.PublicKeys}
	note := ""
	switch n := len(u.Token); {
	case u.Fault != "":
		note = "its token stays behind: " + u.Fault
	case n < client.MinTakenToken || n > client.MaxTakenToken:
		take.Token = ""
		note = fmt.Sprintf("its token stays behind: one that is taken over has %d to %d characters", client.MinTakenToken,
			client.MaxTakenToken)
	}
	if here == nil {
		made := &core.User{Name: name, Role: core.RoleUser, Email: u.Email, Disabled: u.Inactive}
		if u.Admin {
			made.Role = core.RoleAdmin
		}
		p.add(Row{"user", "", u.Name, actTake, note}, func(ctx context.Context) error { return p.c.NewUser(ctx, made) })
		taken := &client.UserTaken{Token: client.TakenNow, SSHKey: client.TakenNow}
		for range u.PublicKeys {
			taken.PublicKeys = append(taken.PublicKeys, client.TakenNow)
		}
		p.credentials(name, take, taken)
		return nil
	}
	dry := *take
	dry.DryRun = true
	taken, err := client.TakeOver(ctx, p.c, name, &dry)
	if err != nil {
		switch core.CodeOf(err) {
		case core.Invalid, core.Conflict:
			p.add(Row{"user", "", u.Name, actConflict, err.Error()}, nil)
			p.refused[u.Name] = true
			return nil
		default:
			return err
		}
	}
	// Somebody who has an account or a token here already may be somebody else: the token would make them one.
	known := taken.Token == client.TakenBefore || here.UnixName == "" && here.UID == nil && p.tokens[name] == 0
	if !known && !p.o.sameNames {
		const why = "there is such a user here; --same-names says that they are the same"
		p.add(Row{"user", "", u.Name, actConflict, why}, nil)
		p.refused[u.Name] = true
		return nil
	}
	p.add(Row{"user", "", u.Name, actSame, note}, nil)
	p.credentials(name, take, taken)
	return nil
}

// credentials lists a user's token and keys. One call takes them over, that of the first that is not here.
func (p *plan) credentials(name core.UserName, take *client.TakeUser, taken *client.UserTaken) {
	done := false
	step := func(ctx context.Context) error {
		if done {
			return nil
		}
		done = true
		_, err := client.TakeOver(ctx, p.c, name, take)
		return err
	}
	row := func(kind string, given bool, t client.Taken) {
		if !given {
			return
		}
		switch t {
		case client.TakenNow:
			p.add(Row{kind, "", string(name), actTake, ""}, step)
		case client.TakenOther:
			p.add(Row{kind, "", string(name), actSame, "has another one here, which stays"}, nil)
		case client.TakenBefore, client.TakenNothing:
			p.add(Row{kind, "", string(name), actSame, ""}, nil)
		}
	}
	row("token", take.Token != "", taken.Token)
	row("ssh_key", take.SSHKey != "", taken.SSHKey)
	for _, t := range taken.PublicKeys {
		row("public_key", true, t)
	}
}

// roles are dstack's in a project.
var roles = map[string]core.Role{"admin": core.RoleAdmin, "manager": core.RoleManager, "user": core.RoleUser}

func (p *plan) project(ctx context.Context, in *inventory.Project) error {
	name := core.ProjectName(in.Name)
	here := p.projects[name]
	var members []core.Member
	var skipped []string
	for _, m := range in.Members {
		if p.refused[m.User] || roles[m.Role] == "" {
			skipped = append(skipped, m.User)
			continue
		}
		members = append(members, core.Member{User: core.UserName(m.User), Role: roles[m.Role]})
	}
	note := ""
	if len(skipped) > 0 {
		note = "without " + strings.Join(skipped, ", ")
	}
	if here == nil {
		made := &core.Project{Name: name, Public: in.Public, Members: members, Runtime: core.RuntimeContainer} // as there
		if !p.refused[in.Owner] {
			made.Owner = core.UserName(in.Owner)
		}
		p.add(Row{"project", "", in.Name, actTake, note}, func(ctx context.Context) error {
			return p.c.NewProject(ctx, made)
		})
		for _, m := range members {
			p.add(Row{"member", in.Name, string(m.User), actTake, string(m.Role)}, func(context.Context) error { return nil })
		}
		return p.secrets(ctx, in, false)
	}
	missing := 0
	for _, m := range members {
		if !slices.ContainsFunc(here.Members, func(o core.Member) bool { return o.User == m.User && o.Role == m.Role }) {
			missing++
		}
	}
	if missing > 0 && !p.o.sameNames {
		p.add(Row{"project", "", in.Name, actConflict, "there is such a project here with other members; --same-names says " +
			"that they are the same"}, nil)
		p.refused["project "+in.Name] = true
		return nil
	}
	p.add(Row{"project", "", in.Name, actSame, note}, nil)
	for _, m := range members {
		p.member(name, here, m)
	}
	return p.secrets(ctx, in, true)
}

// member adds a member to a project that is here. A role that was given here stays.
func (p *plan) member(name core.ProjectName, here *core.Project, m core.Member) {
	for _, o := range here.Members {
		if o.User != m.User {
			continue
		}
		note := string(m.Role)
		if o.Role != m.Role {
			note = fmt.Sprintf("is %s here, was %s there", o.Role, m.Role)
		}
		p.add(Row{"member", string(name), string(m.User), actSame, note}, nil)
		return
	}
	p.add(Row{"member", string(name), string(m.User), actTake, string(m.Role)}, func(ctx context.Context) error {
		return p.c.PutMember(ctx, name, m.User, m.Role)
	})
}

// secrets takes over those of a project. One that has another value here stays.
func (p *plan) secrets(ctx context.Context, in *inventory.Project, here bool) error {
	have := map[string]bool{}
	secrets := &client.Secrets{Client: p.c, Project: core.ProjectName(in.Name)}
	if here {
		list, err := secrets.List(ctx)
		if err != nil {
			return err
		}
		for _, s := range list.Secrets {
			have[s.Name] = true
		}
	}
	for _, s := range in.Secrets {
		row := Row{"secret", in.Name, s.Name, actTake, ""}
		switch {
		case s.Fault != "":
			row.Action, row.Note = actConflict, s.Fault
		case have[s.Name]:
			now, err := secrets.Get(ctx, s.Name)
			if err != nil {
				return err
			}
			if row.Action = actSame; now.Value != s.Value {
				row.Action, row.Note = actConflict, "it has another value here, which stays"
			}
		}
		p.add(row, func(ctx context.Context) error { return secrets.Set(ctx, s.Name, s.Value) })
	}
	return nil
}

// fleet takes over a fleet of SSH hosts with its keys.
func (p *plan) fleet(ctx context.Context, in *inventory.Fleet) error {
	row := Row{"fleet", in.Project, in.Name, actTake, "its hosts become nodes here; stop the other server before"}
	refuse := func(why string) error {
		row.Action, row.Note = actConflict, why
		p.add(row, nil)
		return nil
	}
	switch {
	case p.o.noFleets:
		row.Action, row.Note = actLeave, "--no-fleets"
		p.add(row, nil)
		return nil
	case p.refused["project "+in.Project]:
		return refuse("its project is not taken over")
	}
	cfg, err := config.ReadJSON(in.Configuration)
	if err != nil {
		return refuse(oneLine(err))
	}
	spec, err := convert.Fleet(cfg, func(file string) ([]byte, error) {
		return nil, core.Errorf(core.Invalid, "%s is a file of the client that made it", file)
	})
	if err != nil {
		return refuse(oneLine(err))
	}
	spec.Project = core.ProjectName(in.Project)
	here, err := p.c.Fleet(ctx, in.Name)
	switch {
	case core.CodeOf(err) == core.NotFound:
	case err != nil:
		return err
	case here.Project != spec.Project:
		return refuse("there is such a fleet here, of another project; names of fleets are the cluster's")
	default:
		dry := *spec
		dry.DryRun = true
		change, err := p.c.PutFleet(ctx, in.Name, &dry)
		if err != nil {
			return refuse(oneLine(err))
		}
		if change.Action != "none" {
			return refuse("there is such a fleet here, with other hosts")
		}
		row.Action, row.Note = actSame, ""
	}
	p.add(row, func(ctx context.Context) error {
		_, err := p.c.PutFleet(ctx, in.Name, spec)
		return err
	})
	return nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
