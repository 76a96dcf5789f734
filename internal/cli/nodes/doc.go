// Package nodes is the native commands on nodes and fleets, and the part of apply that makes a fleet.
package nodes

import (
	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

// Commands are the commands on nodes and fleets.
func Commands(a *app.App) []*cobra.Command {
	n := nodes{a}
	return []*cobra.Command{
		n.command(), fleets{a}.command(), n.stateCommand(core.VerbDrain), n.stateCommand(core.VerbResume),
		n.stateCommand(core.VerbDown),
	}
}
