// Package admin is the native commands on who may use what: users, projects, policy, QOS, reservations, licenses,
// tokens, the audit log and the server's settings.
package admin

import (
	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

// Commands are the commands of administrators; everybody may look.
func Commands(a *app.App) []*cobra.Command {
	p := people{a}
	return []*cobra.Command{
		p.usersCommand(), p.projectsCommand(), policies{a}.command(), qosCommand(a), reservations{a}.command(),
		licensesCommand(a), reconfigureCommand(a), auditCommand(a), tokens{a}.command(), newSecrets(a), serverCommand(a),
	}
}
