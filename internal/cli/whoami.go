package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

func (a *App) whoamiCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "whoami", Short: "show who you are to the cluster", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			me, err := cl.Whoami(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(me)
			}
			role := ""
			if me.Admin {
				role = ", administrator"
			}
			_, err = fmt.Fprintf(a.Out, "%s (uid %d), project %s%s\n", app.Cell(string(me.User)), me.UID,
				app.Cell(string(me.Project)), role)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
