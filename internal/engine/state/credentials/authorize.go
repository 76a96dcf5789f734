package credentials

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

// authorize refuses changes of what is not the caller's. Secrets are changed by administrators of their
// project, and by its managers where that is allowed; repositories by its members; the rest by the user whose it is.
func authorize(t *people.Tables, by core.Identity, key core.CredentialKey, managers bool) error {
	denied := core.Errorf(core.Denied, "you may not change a %s of %s", key.Kind, key.Owner).Because("access_denied")
	if !key.Kind.OfProject() {
		if _, ok := t.User(core.UserName(key.Owner)); !ok {
			return core.Errorf(core.Invalid, "there is no user %q", key.Owner).Because("invalid_user")
		}
		if by.Admin || by.User == core.UserName(key.Owner) {
			return nil
		}
		return denied
	}
	project := core.ProjectName(key.Owner)
	if _, ok := t.Project(project); !ok {
		return core.Errorf(core.NotFound, "there is no project %q", project).Because("invalid_project")
	}
	if err := people.CheckTokenProject(by, project); err != nil {
		return err
	}
	least := core.RoleUser
	if key.Kind == core.SecretCredential {
		if least = core.RoleAdmin; managers {
			least = core.RoleManager
		}
	}
	role := t.Role(by.User, project)
	if by.Plain && role.Rank() > core.RoleUser.Rank() {
		role = core.RoleUser
	}
	if by.Admin || role.Rank() >= least.Rank() {
		return nil
	}
	return denied
}
