package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// fleets are the commands on fleets.
type fleets struct{ *app.App }

func (a fleets) command() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "fleet", Aliases: []string{"fleets"}, Short: "list, show and delete fleets; `apply` makes them",
		Args: app.NoSuchCommand, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	list := &cobra.Command{
		Use: "list", Short: "list the fleets and their hosts", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(list, a.get(), a.delete(), a.trust())
	return c
}

func (a fleets) list(ctx context.Context, asJSON bool) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	l, err := c.Fleets(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return a.PrintJSON(l)
	}
	return fleetTable(l.Fleets).Write(a.Out)
}

// fleetTable shows fleets as dstack does: each with its instances below it.
func fleetTable(list []client.Fleet) app.Table {
	t := app.Table{{"NAME", "PROJECT", "NODES", "NODE", "HOST", "RESOURCES", "STATUS", "CREATED", "NOTE"}}
	for i := range list {
		f := &list[i]
		t.Row(f.Name, string(f.Project), fmt.Sprint(len(f.Instances)), "", "", "", f.Status, app.Clock(f.Created), "")
		for k := range f.Instances {
			x := &f.Instances[k]
			t.Row(fmt.Sprintf("   instance=%d", x.Num), "", "", string(x.Node), x.Host, instanceResources(x),
				instanceStatus(x), "", cmp.Or(x.Cause, x.Note))
		}
	}
	return t
}

func instanceResources(x *client.FleetInstance) string {
	if x.Hardware.CPUs == 0 {
		return ""
	}
	text := fmt.Sprintf("cpu=%d mem=%s", x.Hardware.CPUs, app.Size(x.Hardware.Memory))
	if x.Hardware.TmpDisk > 0 {
		text += " disk=" + app.Size(x.Hardware.TmpDisk)
	}
	if len(x.Hardware.Gres) > 0 {
		text += " " + app.Gres(x.Hardware.Gres)
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

func (a fleets) get() *cobra.Command {
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
				return a.PrintJSON(f)
			}
			return fleetTable([]client.Fleet{*f}).Write(a.Out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a fleets) delete() *cobra.Command {
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
				what = fmt.Sprintf("%s of fleet %s", app.Plural(len(nums), "instance"), args[0])
			}
			if !a.Confirm(yes, "Delete %s?", what) {
				return a.Declined("nothing was deleted")
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
func (a fleets) untilGone(ctx context.Context, c *client.Client, name string, nums []int32) error {
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
				a.Note("%s", note)
			}
		}
		if left == 0 && len(nums) > 0 {
			return nil
		}
		if err := app.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// leftBehind names the hosts that could not be logged into any more: what was put there is still there.
func (a fleets) leftBehind(ctx context.Context, c *client.Client, was *client.Fleet, nums []int32) error {
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
				a.Note("%s: %s", x.Node, d.Reason)
			}
		}
	}
	return nil
}

func (a fleets) trust() *cobra.Command {
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
			a.Note("fleet %s: the host keys presented next will be trusted; `bireme fleet get %s` shows the progress",
				args[0], args[0])
			return nil
		},
	}
	c.Flags().Int32SliceVarP(&nums, "instance", "i", nil, "only instances with these `NUMBERS`")
	return c
}
