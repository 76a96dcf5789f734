package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/core"
)

func serverCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{
		Use: "server", Short: "the servers of the cluster: who leads, how far the others are behind",
		Args: app.NoSuchCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "list the servers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return listServers(cmd.Context(), a, asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list)
	return c
}

func listServers(ctx context.Context, a *app.App, asJSON bool) error {
	cl, err := a.Connect()
	if err != nil {
		return err
	}
	list, err := cl.Servers(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(list)
	}
	t := app.Table{{"NAME", "ROLE", "ADDRESS", "VERSION", "EVENT", "BEHIND", "SINCE"}}
	for i := range list.Servers {
		s := &list.Servers[i]
		behind := "-"
		switch {
		case s.Silent > 0:
			behind = fmt.Sprintf("silent for %.0fs", s.Silent)
		case s.Role == "follows":
			behind = fmt.Sprintf("%.1fs", s.Behind)
		}
		t.Row(s.Name, s.Role, orDash(s.Address), s.Version, fmt.Sprint(s.Seq), behind, since(s.Started))
	}
	return t.Write(a.Out)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func since(t core.Time) string {
	if t == 0 {
		return "-"
	}
	return t.Go().Local().Format(time.DateTime)
}
