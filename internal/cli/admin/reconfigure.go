package admin

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func reconfigureCommand(a *app.App) *cobra.Command {
	var in client.Reconfigure
	var asJSON bool
	c := &cobra.Command{
		Use: "reconfigure", Short: "have the server read its config file again", Args: cobra.NoArgs,
		Long: "Has the server read its config file again, check it whole and take it over, all of it or nothing. " +
			"Settings that need a restart of the server are listed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			out, err := cl.Reconfigure(cmd.Context(), &in)
			if err != nil {
				return withFaults(err)
			}
			if asJSON {
				return a.PrintJSON(out)
			}
			return printReconfigured(a, out)
		},
	}
	c.Flags().BoolVar(&in.DryRun, "dry-run", false, "show what would change, without changing it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// withFaults words an error with a line for each of its faults that its message does not tell.
func withFaults(err error) error {
	var e *core.Error
	if !errors.As(err, &e) || len(e.Faults) == 0 {
		return err
	}
	c := *e
	lines := []string{e.Message}
	for _, f := range e.Faults {
		if strings.Contains(e.Message, f.Message) {
			continue
		}
		lines = append(lines, strings.TrimPrefix(f.Path+": "+f.Message, ": "))
	}
	c.Message = strings.Join(lines, "\n")
	return &c
}

func printReconfigured(a *app.App, out *client.Reconfigured) error {
	d := &core.PolicyDiff{Changes: out.Changes, Applied: out.Applied}
	for _, f := range out.Settings {
		d.Changes = append(d.Changes, core.PolicyChange{
			Op: "change", What: "setting " + f.Name,
			Fields: []core.FieldChange{{Name: "value", Was: f.Was, Is: f.Is}},
		})
	}
	var b strings.Builder
	for _, f := range out.Restart {
		fmt.Fprintf(&b, "! %s: %s -> %s needs a restart of the server\n", f.Name, app.Cell(f.Was), app.Cell(f.Is))
	}
	for _, n := range out.Notes {
		a.Note("note: %s", n)
	}
	if err := printDiff(a.Out, d); err != nil {
		return err
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}
