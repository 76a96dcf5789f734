package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
)

// FleetApply is `bireme apply` of a fleet.
type FleetApply struct {
	App     *app.App
	Name    string // of the fleet; "": the file has it
	Env     []string
	Project string
	Yes     bool // do not ask
	Force   bool // hosts leave although jobs run on them
	Detach  bool // do not wait until the hosts are nodes
}

// Run applies a fleet: the plan, the question, and the wait until its hosts are nodes.
func (o *FleetApply) Run(ctx context.Context, file string, cfg *config.Configuration) error {
	if o.Name == "" {
		if err := convert.NameOf(cfg, dstack.CheckFleetName); err != nil {
			return err
		}
		o.Name = cfg.Name()
	} else if err := dstack.CheckFleetName(o.Name); err != nil {
		return app.Usagef("-n: %s", err.Error())
	}
	if o.Name == "" {
		return app.Usagef("apply: %s: the fleet has no name; set name in the file or give -n", file)
	}
	if err := cfg.Complete(config.Options{Env: o.Env, Lookup: o.App.Lookup}); err != nil {
		return err
	}
	spec, err := convert.Fleet(cfg, o.readKey)
	if err != nil {
		return err
	}
	spec.Force, spec.Project = o.Force, core.ProjectName(o.Project)
	c, err := o.App.Connect()
	if err != nil {
		return err
	}
	spec.DryRun = true
	plan, err := c.PutFleet(ctx, o.Name, spec)
	if err != nil {
		return err
	}
	spec.DryRun = false
	if plan.Action == "none" {
		o.App.Note("fleet %s: no changes", o.Name)
	} else {
		fmt.Fprint(o.App.Err, fleetPlan(plan, spec)) // also for those who are not asked: it is what will be done
		if !o.App.Confirm(o.Yes, "%s", map[string]string{
			"create": "Create fleet " + o.Name + "?", "update": "Update fleet " + o.Name + " in place?",
		}[plan.Action]) {
			return o.App.Declined("nothing was changed")
		}
	}
	if _, err = c.PutFleet(ctx, o.Name, spec); err != nil {
		return err
	}
	if o.Detach {
		return nil
	}
	return o.untilUp(ctx, c)
}

// readKey reads a private key; ~ is the user's home.
func (o *FleetApply) readKey(file string) ([]byte, error) {
	path := file
	if rest, ok := strings.CutPrefix(file, "~/"); ok {
		home, known := o.App.Lookup("HOME")
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
	fmt.Fprintf(&b, "  %-9s ssh, %s, placement %s", "fleet", app.Plural(len(s.Hosts), "host"), s.Placement)
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

// untilUp prints what is done about each host until all are nodes or have failed.
func (o *FleetApply) untilUp(ctx context.Context, c *client.Client) error {
	said := map[core.NodeName]string{}
	for {
		f, err := c.Fleet(ctx, o.Name)
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
				o.App.Note("%s %s: %s", x.Node, x.Host, app.Cell(line))
			}
		}
		if open == 0 {
			if err := fleetTable([]client.Fleet{*f}).Write(o.App.Out); err != nil {
				return err
			}
			if failed > 0 {
				return fmt.Errorf("%s of %d cannot be used yet; the server keeps trying, see `bireme fleet`",
					app.Plural(failed, "host"), len(f.Instances))
			}
			return nil
		}
		if err := app.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
