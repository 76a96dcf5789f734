package admin

import (
	"context"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/policyfile"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// policies are the commands on the policy.
type policies struct{ *app.App }

func (a policies) command() *cobra.Command {
	c := &cobra.Command{
		Use: "policy", Short: "show and change projects, members, QOS and their limits", Args: app.NoSuchCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.get(), a.apply())
	return c
}

func (a policies) get() *cobra.Command {
	var asJSON bool
	format := "yaml"
	c := &cobra.Command{
		Use: "get", Short: "print every QOS and project as one file", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := app.OneFlag(cmd, "json", "output"); err != nil {
				return err
			}
			switch format {
			case "yaml":
			case "json":
				asJSON = true
			default:
				return app.Usagef("policy get: --output %q: expected yaml or json", format)
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
				return a.PrintJSON(p)
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

func (a policies) apply() *cobra.Command {
	var in client.ApplyPolicy
	var asJSON bool
	c := &cobra.Command{
		Use: "apply FILE", Short: "change the policy to what a file says, all of it or nothing", Args: cobra.ExactArgs(1),
		Long: "Changes every QOS, project and member that FILE names to what it says; - reads standard input. " +
			"What FILE does not name stays, unless --prune is given. Everything is checked first, and nothing is " +
			"changed if anything is wrong.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.applyFile(cmd.Context(), args[0], &in, asJSON)
		},
	}
	f := c.Flags()
	f.BoolVar(&in.DryRun, "dry-run", false, "show what would change, without changing it")
	f.BoolVar(&in.Force, "force", false, "also set limits below present use")
	f.BoolVar(&in.Prune, "prune", false, "remove what the file does not name")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a policies) applyFile(ctx context.Context, name string, in *client.ApplyPolicy, asJSON bool) error {
	data, err := a.ReadFile(name)
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
			err = fmt.Errorf("%w\nnothing was changed; --force sets these limits anyway", err)
		}
		return err
	}
	if asJSON {
		return a.PrintJSON(d)
	}
	return printDiff(a.Out, d)
}

// fieldUnits are the fields of records that are lengths of time, each with its unit.
var fieldUnits = map[string]time.Duration{
	"max_time": time.Second, "default_time": time.Second, "grace": time.Second, "preempt_exempt": time.Second,
	"resume":     time.Second,
	"purge_comp": time.Second, "max_start_delay": time.Second, "max_wall": time.Minute,
}

var tresMemory = regexp.MustCompile(`\bmem=(\d+)`)

// inUnits words a field's value for people: 259200 seconds are 3d00h, mem=2097152, in MiB, is mem=2T.
func inUnits(name, value string) string {
	if unit := fieldUnits[name]; unit != 0 {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && n > 0 && n < int64(math.MaxInt64/unit) {
			return app.Span(time.Duration(n) * unit)
		}
	}
	if strings.Contains(name, "mins") { // amounts times minutes
		return value
	}
	return tresMemory.ReplaceAllStringFunc(value, func(text string) string {
		n, err := strconv.ParseInt(text[len("mem="):], 10, 64)
		if err != nil || n > math.MaxInt64>>20 {
			return text
		}
		return "mem=" + app.Size(core.Bytes(n<<20))
	})
}

// printDiff prints what changed, a line an entry, with its fields below it.
func printDiff(w io.Writer, d *core.PolicyDiff) error {
	var b strings.Builder
	for _, c := range d.Changes {
		sign := map[string]string{"add": "+", "change": "~", "remove": "-"}[c.Op]
		fmt.Fprintf(&b, "%s %s\n", sign, app.Cell(c.What))
		for _, f := range c.Fields {
			switch {
			case f.Was == "":
				fmt.Fprintf(&b, "    %s: %s\n", f.Name, app.Cell(inUnits(f.Name, f.Is)))
			default:
				fmt.Fprintf(&b, "    %s: %s -> %s\n", f.Name, app.Cell(inUnits(f.Name, f.Was)), app.Cell(inUnits(f.Name, f.Is)))
			}
		}
	}
	for _, x := range d.Exceeded {
		fmt.Fprintf(&b, "! %s has %d, %s allows %d\n", app.Cell(x.Who), x.Has, x.Limit, x.Max)
	}
	switch {
	case len(d.Changes) == 0:
		b.WriteString("nothing changes\n")
	case !d.Applied:
		b.WriteString("nothing was changed: this was a dry run\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
