package people

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/named"
)

// CheckTokenProject refuses a token that is limited to another project.
func CheckTokenProject(by core.Identity, project core.ProjectName) error {
	if by.Project == "" || by.Project == project {
		return nil
	}
	return core.Errorf(core.Denied, "this token is limited to project %s", by.Project).Because("token_scope")
}

// CreateToken stores a new token's hash. Users create their own; only administrators create join tokens. limit is the
// number of working tokens of a user, 0: any.
func (d *Directory) CreateToken(by core.Identity, t *core.Token, limit int) error {
	if t.Kind == "join" || t.User != by.User {
		if err := AdminOnly(by, "may create or revoke such tokens"); err != nil {
			return err
		}
	}
	if t.Kind == "user" {
		if _, ok := d.t.users[t.User]; !ok {
			return core.Errorf(core.NotFound, "there is no user %q", t.User).Because("invalid_user")
		}
	}
	if _, ok := d.t.tokens[t.ID]; ok {
		return core.Errorf(core.Conflict, "token %s already exists", t.ID).Because("token_exists")
	}
	// One that is taken over: nobody makes the same secret twice.
	if o, ok := d.t.tokensByHash[t.Hash]; ok && t.Hash != (core.Hash{}) {
		return core.Errorf(core.Conflict, "token %s has the same secret", o.ID).Because("token_exists")
	}
	if err := d.checkToken(t); err != nil {
		return err
	}
	if err := d.limitByParent(by, t); err != nil {
		return err
	}
	if err := d.admitCount(by, t, limit); err != nil {
		return err
	}
	d.putToken(t)
	return nil
}

// checkToken checks the fields of a token.
func (d *Directory) checkToken(t *core.Token) error {
	var faults []core.Fault
	fault := func(path string, e *core.Error) { faults = append(faults, core.Fault{Path: path, Message: e.Message}) }
	if t.Name != "" && (len(t.Name) > core.MaxTokenName || !named.IsValid(t.Name)) {
		fault("name", core.Errorf(core.Invalid,
			"%.80q: a token's name has at most %d bytes, without blanks, commas, slashes, colons or control characters", t.Name,
			core.MaxTokenName))
	}
	if len(t.Note) > core.MaxTokenNote {
		fault("note", core.Errorf(core.Invalid, "%d bytes are too many; a token's note has at most %d", len(t.Note),
			core.MaxTokenNote))
	} else if !printable(t.Note) {
		fault("note", core.Errorf(core.Invalid, "%q: a token's note is text without control characters", t.Note))
	}
	for _, x := range t.Scopes {
		if !slices.Contains(core.Scopes(), x) {
			fault("scopes", core.Errorf(core.Invalid, "%.80q: expected read, submit, admin or project", x))
		}
	}
	if limited := slices.Contains(t.Scopes, core.ScopeProject); limited != (t.Project != "") {
		fault("project", core.Errorf(core.Invalid, "scope project needs a project, and a project needs scope project"))
	} else if limited && slices.Contains(t.Scopes, core.ScopeAdmin) {
		fault("scopes", core.Errorf(core.Invalid, "a token that is limited to one project cannot have scope admin"))
	}
	if len(t.Scopes) == 1 && t.Scopes[0] == core.ScopeProject {
		fault("scopes", core.Errorf(core.Invalid, "scope project only limits other scopes: add read or submit"))
	}
	if t.Project != "" {
		if _, ok := d.t.projects[t.Project]; !ok {
			fault("project", core.Errorf(core.Invalid, "there is no project %.80q", t.Project))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Invalid, "%s: %s", faults[0].Path, faults[0].Message).Because("invalid_token")
	e.Faults = faults
	return e
}

func printable(text string) bool {
	return utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// limitByParent ensures that a token that was made with another has no more rights and no later end than that one.
func (d *Directory) limitByParent(by core.Identity, t *core.Token) error {
	if by.Untrusted && t.Kind == "user" && t.Has(core.ScopeAdmin) {
		return core.Errorf(core.Denied, "through a node that joined without --trust-root only tokens with the scopes read "+
			"and submit are created or rotated").Because("token_scope")
	}
	if by.Token == "" {
		return nil
	}
	parent, ok := d.t.tokens[by.Token]
	if !ok || parent.Dead(d.log.Now()) {
		return core.Errorf(core.Unknown, "this token was revoked or has expired").Because("bad_token")
	}
	if by.Prior {
		return core.Errorf(core.Denied, "the old secret of a rotated token cannot create tokens").Because("token_scope")
	}
	if t.Kind == "user" {
		switch right := t.Exceeds(parent); right {
		case "":
		case core.ScopeProject:
			return core.Errorf(core.Denied, "a token limited to project %s cannot create a token for more than that",
				parent.Project).Because("token_scope")
		default:
			return core.Errorf(core.Denied, "a token without scope %s cannot create one with it: this one has %s", right,
				parent.ScopeText()).Because("token_scope")
		}
	}
	if t.Outlives(parent) {
		return core.Errorf(core.Denied, "a token cannot create one that is valid longer than itself: this one expires at %s",
			parent.Expires.Go().UTC().Format("2006-01-02T15:04:05Z")).Because("token_scope")
	}
	t.Parent = parent.ID
	return nil
}

// admitCount refuses a token above the limit, and a name that another token of the user has. As many tokens that no
// longer work are kept as may work, so that creating and revoking them in turn does not fill the table.
func (d *Directory) admitCount(by core.Identity, t *core.Token, limit int) error {
	if t.Kind != "user" {
		return nil
	}
	good := 0
	var dead []*core.Token
	for _, o := range d.t.tokens {
		switch {
		case o.Kind != "user" || o.User != t.User:
		case o.Dead(d.log.Now()):
			dead = append(dead, o)
		default:
			if good++; t.Name != "" && o.Name == t.Name {
				return core.Errorf(core.Conflict,
					"%s already has a token named %s (%s); rotate or revoke it, or use another name",
					t.User, t.Name, o.ID).Because("token_exists")
			}
		}
	}
	if limit <= 0 {
		return nil
	}
	if good >= limit && !by.Admin {
		return core.Errorf(core.Exhausted, "%s has %d tokens; limits.tokens allows %d per user: revoke some first", t.User,
			good, limit).Because("token_limit")
	}
	sortByDeadSince(dead)
	for i := 0; i <= len(dead)-limit; i++ {
		d.deleteToken(dead[i])
	}
	return nil
}

// sortByDeadSince sorts tokens by when they ended, the oldest first.
func sortByDeadSince(list []*core.Token) {
	slices.SortFunc(list, func(a, b *core.Token) int {
		if x, y := a.DeadSince(), b.DeadSince(); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
}
