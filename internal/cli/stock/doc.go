// Package stock is the commands of dstack's CLI with its options and tables: offer, event, volume, run, delete, init
// and others. `bireme` has those that it has not in a form of its own; under the name dstack (Root) all of them are
// there, and every option that dstack's CLI takes is taken or refused with a reason.
//
// The commands call dstack's API through client.Dstack and word the answers by package screen.
package stock

import (
	"context"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

// base is what the commands share.
type base struct {
	*app.App
	project string
}

// server connects and finds the project.
func (b *base) server(ctx context.Context) (client.Dstack, error) {
	c, err := b.Connect()
	if err != nil {
		return client.Dstack{}, err
	}
	p, err := app.Project(ctx, c, b.project)
	return client.Dstack{Client: c, Project: p}, err
}

// projectFlag is the option that all commands have.
func (b *base) projectFlag(c *cobra.Command) {
	c.PersistentFlags().StringVar(&b.project, "project", "", "`PROJECT` to look at or act in")
}

// Commands are those that `bireme` has in this form.
func Commands(a *app.App) []*cobra.Command {
	return []*cobra.Command{
		offerCommand(a), runCommand(a), deleteCommand(a), eventCommand(a), volumeCommand(a), initCommand(a),
	}
}
