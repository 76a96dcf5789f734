package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *App) licenseCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "licenses", Aliases: []string{"license"}, Short: "list licences: how many there are, in use and reserved", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.licenses(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *App) licenses(ctx context.Context, asJSON bool) error {
	cl, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := cl.Licenses(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(list)
	}
	t := table{{"NAME", "TOTAL", "USED", "FREE", "RESERVED"}}
	for i := range list.Licenses {
		l := &list.Licenses[i]
		t.row(l.Name, fmt.Sprint(l.Total), fmt.Sprint(l.Used), fmt.Sprint(l.Free()), fmt.Sprint(l.Reserved))
	}
	return t.write(a.Out)
}
