// Package jobs is the native commands on runs and jobs: apply, attach, ps, logs, ssh, stop, checkpoint, why, metrics,
// events and config.
//
// Each command is an options struct and run(ctx). A job is named by its id or by its run's name (ref.go).
package jobs

import (
	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

// Commands are the commands on runs and jobs.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		applyCommand(a), attachCommand(a), psCommand(a), logsCommand(a), sshCommand(a), stopCommand(a), checkpointCommand(a),
		whyCommand(a), metricsCommand(a), eventsCommand(a), configCommand(a),
	}
}

// Stock are the commands that dstack's CLI has, too, by their names there.
func Stock(a *app.App) map[string]*cobra.Command {
	return map[string]*cobra.Command{
		"apply": applyCommand(a), "attach": attachCommand(a), "logs": logsCommand(a), "stop": stopCommand(a),
		"metrics": metricsCommand(a),
	}
}
