package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
)

func (a *App) fleetCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "fleet", Aliases: []string{"fleets"}, Short: "list, show and delete fleets; `apply` makes them",
		Args: noSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.fleets(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	list := &cobra.Command{
		Use: "list", Short: "list the fleets and their hosts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.fleets(cmd.Context(), asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, a.fleetGet(), a.fleetDelete(), a.fleetTrust())
	return c
}

func (a *App) fleets(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	l, err := c.Fleets(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(l)
	}
	return fleetTable(l.Fleets).write(a.Out)
}

// fleetTable shows fleets as dstack does: each with its instances below it.
func fleetTable(list []client.Fleet) table {
	t := table{{"NAME", "PROJECT", "NODES", "NODE", "HOST", "RESOURCES", "STATUS", "CREATED", "NOTE"}}
	for i := range list {
		f := &list[i]
		t.row(f.Name, string(f.Project), fmt.Sprint(len(f.Instances)), "", "", "", f.Status, clock(f.Created), "")
		for k := range f.Instances {
			x := &f.Instances[k]
			t.row(fmt.Sprintf("   instance=%d", x.Num), "", "", string(x.Node), x.Host, instanceResources(x), instanceStatus(x), "", cmp.Or(x.Cause, x.Note))
		}
	}
	return t
}

func instanceResources(x *client.FleetInstance) string {
	if x.Hardware.CPUs == 0 {
		return ""
	}
	text := fmt.Sprintf("cpu=%d mem=%s", x.Hardware.CPUs, size(x.Hardware.Memory))
	if x.Hardware.TmpDisk > 0 {
		text += " disk=" + size(x.Hardware.TmpDisk)
	}
	if len(x.Hardware.Gres) > 0 {
		text += " " + gres(x.Hardware.Gres)
	}
	return text
}

func instanceStatus(x *client.FleetInstance) string {
	switch {
	case x.Phase != "":
		return x.Status + " (" + x.Phase + ")"
	case x.Blocks > 1 && (x.Status == "idle" || x.Status == "busy"):
		return fmt.Sprintf("%d/%d busy", x.Busy, x.Blocks)
	}
	return x.Status
}

func (a *App) fleetGet() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "get NAME", Short: "show a fleet", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			f, err := c.Fleet(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(f)
			}
			return fleetTable([]client.Fleet{*f}).write(a.Out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *App) fleetDelete() *cobra.Command {
	var yes, force bool
	var nums []int32
	c := &cobra.Command{
		Use: "delete NAME", Short: "delete a fleet: its agents are ended and removed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			what := "fleet " + args[0]
			if len(nums) > 0 {
				what = fmt.Sprintf("%s of fleet %s", plural(len(nums), "instance"), args[0])
			}
			if !a.confirm(yes, "Delete %s?", what) {
				return core.Errorf(core.Conflict, "nothing was deleted")
			}
			was, err := c.Fleet(cmd.Context(), args[0])
			if core.CodeOf(err) == core.NotFound {
				was = &client.Fleet{} // its deletion says so
			} else if err != nil {
				return err
			}
			if err := c.DropFleet(cmd.Context(), args[0], nums, force); err != nil {
				return err
			}
			if err := a.untilGone(cmd.Context(), c, args[0], nums); err != nil {
				return err
			}
			return a.leftBehind(cmd.Context(), c, was, nums)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	c.Flags().BoolVar(&force, "force", false, "although jobs run there: they end")
	c.Flags().Int32SliceVarP(&nums, "instance", "i", nil, "only instances with these `NUMBERS`")
	return c
}

// untilGone waits until a fleet, or some of its instances, have left.
func (a *App) untilGone(ctx context.Context, c *client.Client, name string, nums []int32) error {
	said := map[string]bool{}
	for {
		f, err := c.Fleet(ctx, name)
		if core.CodeOf(err) == core.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		left := 0
		for i := range f.Instances {
			x := &f.Instances[i]
			if x.Status != "terminating" {
				continue
			}
			left++
			if note := fmt.Sprintf("%s: %s", x.Node, x.Cause); x.Cause != "" && !said[note] {
				said[note] = true
				a.note("%s", note)
			}
		}
		if left == 0 && len(nums) > 0 {
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// leftBehind names the hosts that could not be logged into any more: what was put there is still there.
func (a *App) leftBehind(ctx context.Context, c *client.Client, was *client.Fleet, nums []int32) error {
	for i := range was.Instances {
		x := &was.Instances[i]
		if len(nums) > 0 && !slices.Contains(nums, x.Num) {
			continue
		}
		list, err := c.NodeEvents(ctx, core.NodeName(x.Node), 1)
		if err != nil {
			return err
		}
		for _, e := range list.Events {
			var d nodeEvent
			if json.Unmarshal(e.Data, &d) == nil && d.Gone && d.Reason != "" {
				a.note("%s: %s", x.Node, d.Reason)
			}
		}
	}
	return nil
}

func (a *App) fleetTrust() *cobra.Command {
	var nums []int32
	c := &cobra.Command{
		Use: "trust NAME", Short: "forget the host keys of a fleet: the next ones shown are kept", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.Connect()
			if err != nil {
				return err
			}
			if err := c.TrustFleet(cmd.Context(), args[0], nums); err != nil {
				return err
			}
			a.note("fleet %s: the host keys shown next are kept; `bireme fleet get %s` tells how it goes", args[0], args[0])
			return nil
		},
	}
	c.Flags().Int32SliceVarP(&nums, "instance", "i", nil, "only instances with these `NUMBERS`")
	return c
}

// fleet applies a fleet: the plan, the question, and the wait until its hosts are nodes.
func (o *applyOptions) fleet(ctx context.Context, file string, src []byte) error {
	f, err := dstack.ParseFleet(file, src)
	if err != nil {
		return err
	}
	if o.name == "" {
		o.name = f.Name
	} else if err := dstack.CheckFleetName(o.name); err != nil {
		return usagef("-n: %s", err.Error())
	}
	if o.name == "" {
		return usagef("apply: %s: a fleet has a name: write it in the file, or give -n", file)
	}
	spec, err := f.Spec(&dstack.FleetOptions{Env: o.env, Lookup: o.app.Lookup, Read: o.readKey})
	if err != nil {
		return err
	}
	spec.Force, spec.Project = o.force, core.ProjectName(o.project)
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	spec.DryRun = true
	plan, err := c.PutFleet(ctx, o.name, spec)
	if err != nil {
		return err
	}
	spec.DryRun = false
	if plan.Action == "none" {
		o.app.note("fleet %s: no changes", o.name)
	} else {
		fmt.Fprint(o.app.Err, fleetPlan(plan, spec)) // also for those who are not asked: it is what will be done
		if !o.app.confirm(o.yes, "%s", map[string]string{
			"create": "Create fleet " + o.name + "?", "update": "Update fleet " + o.name + " in place?"}[plan.Action]) {
			return core.Errorf(core.Conflict, "nothing was changed")
		}
	}
	if _, err = c.PutFleet(ctx, o.name, spec); err != nil {
		return err
	}
	if o.detach {
		return nil
	}
	return o.untilUp(ctx, c)
}

// readKey reads a private key; ~ is the user's home.
func (o *applyOptions) readKey(file string) ([]byte, error) {
	path := file
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, known := o.app.Lookup("HOME")
		if !known {
			return nil, fmt.Errorf("%s: HOME is not set", file)
		}
		path = filepath.Join(home, rest)
	}
	text, err := os.ReadFile(path)
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return nil, fmt.Errorf("%s: %w", file, pe.Err)
	}
	return text, err
}

// fleetPlan words what will change, before the question.
func fleetPlan(p *core.FleetPlan, s *client.FleetSpec) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %-9s ssh, %s, placement %s", "fleet", plural(len(s.Hosts), "host"), s.Placement)
	if s.Network != "" {
		fmt.Fprintf(&b, ", network %s", s.Network)
	}
	b.WriteByte('\n')
	for _, x := range []struct {
		what  string
		hosts []string
	}{{"add", p.Added}, {"remove", p.Removed}, {"change", p.Changed}} {
		for _, h := range x.hosts {
			fmt.Fprintf(&b, "  %-9s %s\n", x.what, h)
		}
	}
	return b.String()
}

// untilUp tells what is done about each host until all are nodes or have failed.
func (o *applyOptions) untilUp(ctx context.Context, c *client.Client) error {
	said := map[core.NodeName]string{}
	for {
		f, err := c.Fleet(ctx, o.name)
		if err != nil {
			return err
		}
		open, failed := 0, 0
		for i := range f.Instances {
			x := &f.Instances[i]
			line := instanceStatus(x)
			switch {
			case x.Phase != "" || x.Status == "terminating":
				open++
			case x.Cause != "":
				line = x.Cause
				failed++
			case x.Status == "idle" || x.Status == "busy":
				if line = x.Status + ", " + instanceResources(x); x.Note != "" {
					line += "; " + x.Note
				}
			default:
				open++
			}
			if said[x.Node] != line {
				said[x.Node] = line
				o.app.note("%s %s: %s", x.Node, x.Host, cell(line))
			}
		}
		if open == 0 {
			if err := fleetTable([]client.Fleet{*f}).write(o.app.Out); err != nil {
				return err
			}
			if failed > 0 {
				again := "it is"
				if failed > 1 {
					again = "they are"
				}
				return fmt.Errorf("%s of %d cannot be used yet; %s tried again, see `bireme fleet`", plural(failed, "host"), len(f.Instances), again)
			}
			return nil
		}
		if err := wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
