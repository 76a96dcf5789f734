package admin

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

func licensesCommand(a *app.App) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "licenses", Aliases: []string{"license"}, Short: "list licenses: total, used, free and reserved",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listLicenses(cmd.Context(), a, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func listLicenses(ctx context.Context, a *app.App, asJSON bool) error {
	cl, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := cl.Licenses(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	t := app.Table{{"NAME", "TOTAL", "USED", "FREE", "RESERVED"}}
	for i := range list.Licenses {
		l := &list.Licenses[i]
		t.Row(l.Name, fmt.Sprint(l.Total), fmt.Sprint(l.Used), fmt.Sprint(l.Free()), fmt.Sprint(l.Reserved))
	}
	return t.Write(a.Out)
}
