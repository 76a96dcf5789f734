package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/policyfile"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

func (a *App) policyCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "show and change who may use how much", Args: noSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.policyGet(), a.policyApply())
	return c
}

func (a *App) policyGet() *cobra.Command {
	var asJSON bool
	format := "yaml"
	c := &cobra.Command{
		Use: "get", Short: "print every QOS and project as one file", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneFlag(cmd, "json", "output"); err != nil {
				return err
			}
			switch format {
			case "yaml":
			case "json":
				asJSON = true
			default:
				return usagef("policy get: %q is neither yaml nor json", format)
			}
			cl, err := a.Connect()
			if err != nil {
				return err
			}
			p, err := cl.Policy(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(p)
			}
			data, err := policyfile.Format(p)
			if err != nil {
				return err
			}
			_, err = a.Out.Write(data)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, as the API has it")
	c.Flags().StringVarP(&format, "output", "o", "yaml", "yaml or json")
	return c
}

func (a *App) policyApply() *cobra.Command {
	var in client.ApplyPolicy
	var asJSON bool
	c := &cobra.Command{
		Use: "apply FILE", Short: "change the policy to what a file says, all of it or nothing", Args: cobra.ExactArgs(1),
		Long: "Changes every QOS, project and member that FILE names to what it says; - reads standard input. " +
			"What FILE does not name stays, unless --prune is given. Everything is checked first, and nothing is changed if anything is wrong.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.applyPolicy(cmd.Context(), args[0], &in, asJSON)
		},
	}
	f := c.Flags()
	f.BoolVar(&in.DryRun, "dry-run", false, "tell what would change, and change nothing")
	f.BoolVar(&in.Force, "force", false, "also set limits below what already runs")
	f.BoolVar(&in.Prune, "prune", false, "remove what the file does not name")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *App) applyPolicy(ctx context.Context, name string, in *client.ApplyPolicy, asJSON bool) error {
	data, err := a.readFile(name)
	if err != nil {
		return err
	}
	file, err := policyfile.Parse(name, data)
	if err != nil {
		return err
	}
	in.Policy = file.Policy
	cl, err := a.Connect()
	if err != nil {
		return err
	}
	d, err := cl.ApplyPolicy(ctx, in)
	if err != nil {
		err = file.Place(err)
		if core.ReasonOf(err) == "limit_below_use" {
			err = fmt.Errorf("%w\nnothing was changed; --force sets such limits all the same", err)
		}
		return err
	}
	if asJSON {
		return a.printJSON(d)
	}
	return a.printDiff(d)
}

// readFile reads a file that the user named; - is standard input.
func (a *App) readFile(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(a.In)
	}
	data, err := os.ReadFile(name)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return nil, usagef("%s: %s", name, pe.Err)
	}
	return data, err
}

// printDiff tells what changed, a line an entry, with its fields below it.
func (a *App) printDiff(d *core.PolicyDiff) error {
	var b strings.Builder
	for _, c := range d.Changes {
		sign := map[string]string{"add": "+", "change": "~", "remove": "-"}[c.Op]
		fmt.Fprintf(&b, "%s %s\n", sign, cell(c.What))
		for _, f := range c.Fields {
			switch {
			case f.Was == "":
				fmt.Fprintf(&b, "    %s: %s\n", f.Name, cell(f.Is))
			default:
				fmt.Fprintf(&b, "    %s: %s -> %s\n", f.Name, cell(f.Was), cell(f.Is))
			}
		}
	}
	for _, x := range d.Exceeded {
		fmt.Fprintf(&b, "! %s has %d, %s allows %d\n", cell(x.Who), x.Has, x.Limit, x.Max)
	}
	switch {
	case len(d.Changes) == 0:
		b.WriteString("nothing changes\n")
	case !d.Applied:
		b.WriteString("nothing was changed: this was a dry run\n")
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}
