package stock

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// notYet is what commands say of what comes with another release.
func notYet(what string) error {
	return fmt.Errorf("%s are not available yet on this server", what)
}

type volumeOptions struct {
	base
	watch, verbose, json bool
}

// volumeCommand lists the network volumes of a project, and the directories of nodes that its runs have mounted.
func volumeCommand(a *app.App) *cobra.Command {
	o := &volumeOptions{base: base{App: a}}
	c := &cobra.Command{
		Use: "volume", Short: "list, show and delete volumes", Args: app.NoSuchCommand,
		Long: "List the network volumes of a project, which `bireme apply` makes, and with -v or --json also its instance " +
			"volumes: the folders of nodes that its live runs have mounted.",
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.projectFlag(c)
	list := &cobra.Command{
		Use: "list", Short: "list volumes", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	for _, c := range []*cobra.Command{c, list} {
		watchFlag(c, &o.watch)
		c.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "show more of each")
		c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	}
	c.AddCommand(list, o.get("volume", "volumes"), o.delete("volume", "volumes"))
	return c
}

// get is `NOUN get NAME --json`.
func (b *base) get(noun, nouns string) *cobra.Command {
	var asJSON bool
	var id string
	c := &cobra.Command{
		Use: "get [NAME]", Short: "print a " + noun + " as JSON", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !asJSON {
				return app.Usagef("%s get: --json is required: there is no other form", noun)
			}
			in, err := nameOrID(args, id)
			if err != nil {
				return err
			}
			return b.show(cmd.Context(), nouns+"/get", in)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	if noun == "fleet" {
		c.Flags().StringVar(&id, "id", "", "the one with this `ID` instead")
	}
	return c
}

// delete is `NOUN delete NAME`.
func (b *base) delete(noun, nouns string) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "delete NAME", Short: "delete a " + noun, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := b.server(cmd.Context())
			if err != nil {
				return err
			}
			var was any
			if err := d.Post(cmd.Context(), nouns+"/get", map[string]any{"name": args[0]}, &was); err != nil {
				return fmt.Errorf("%s %s: %w", noun, args[0], err)
			}
			if !b.Confirm(yes, "Delete the %s %s?", noun, args[0]) {
				return b.Declined("nothing was deleted")
			}
			return d.Post(cmd.Context(), nouns+"/delete", map[string]any{"names": args}, nil)
		},
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// mounted is a directory of nodes that a run has mounted.
type mounted struct {
	Path   string   `json:"path"` // on the node
	Run    string   `json:"run"`
	Inside string   `json:"inside"`
	Nodes  []string `json:"nodes"`
}

func (o *volumeOptions) run(ctx context.Context) error {
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	return o.again(ctx, o.watch && !o.json, func() error {
		var runs []*wire.Run
		in := map[string]any{"project_name": d.Project, "only_active": true, "limit": 100}
		if err := d.All(ctx, "runs/list", in, &runs); err != nil {
			return err
		}
		list := volumesOf(runs)
		vols := []wire.Volume{}
		if err := d.Post(ctx, "volumes/list", nil, &vols); err != nil {
			return err
		}
		if o.json {
			return o.PrintJSON(map[string]any{"project": d.Project, "volumes": vols, "instance_volumes": list})
		}
		if err := o.table(vols).Write(o.Out); err != nil || !o.verbose || len(list) == 0 {
			return err
		}
		fmt.Fprintln(o.Out)
		t := app.Table{{"INSTANCE PATH", "RUN", "MOUNTED AT", "NODES"}}
		for _, m := range list {
			t.Row(m.Path, m.Run, m.Inside, strings.Join(m.Nodes, ","))
		}
		return t.Write(o.Out)
	})
}

// table is the network volumes, for people.
func (o *volumeOptions) table(vols []wire.Volume) app.Table {
	t := app.Table{{"NAME", "CLASS", "SIZE", "STATUS", "NODE", "ATTACHED", "ERROR"}}
	for i := range vols {
		v := &vols[i]
		var conf config.Configuration
		class, size, node := "", "", ""
		if json.Unmarshal(v.Configuration, &conf) == nil && conf.Volume != nil {
			class = config.Value(conf.Volume.StorageClassName)
			if s := conf.Volume.Size; s != nil {
				size = fmt.Sprintf("%gGB", float64(*s))
			}
		}
		if p := v.ProvisioningData; p != nil {
			node = config.Value(p.AvailabilityZone)
		}
		var at []string
		for _, a := range v.Attachments {
			if !slices.Contains(at, a.Instance.Name) {
				at = append(at, a.Instance.Name)
			}
		}
		t.Row(v.Name, class, size, v.Status, node, strings.Join(at, ","), config.Value(v.StatusMessage))
	}
	return t
}

// volumesOf finds the instance volumes of runs in their descriptions.
func volumesOf(runs []*wire.Run) []mounted {
	list := []mounted{}
	for _, r := range runs {
		var spec struct {
			RunName       *string              `json:"run_name"`
			Configuration config.Configuration `json:"configuration"`
		}
		if json.Unmarshal(r.RunSpec, &spec) != nil || spec.RunName == nil || spec.Configuration.Run() == nil {
			continue
		}
		var nodes []string
		for i := range r.Jobs {
			if n := len(r.Jobs[i].Submissions); n > 0 {
				if p := r.Jobs[i].Submissions[n-1].JobProvisioningData; p != nil && !slices.Contains(nodes, p.InstanceID) {
					nodes = append(nodes, p.InstanceID)
				}
			}
		}
		for _, m := range spec.Configuration.Run().Volumes {
			if m.IsInstance() {
				list = append(list, mounted{Path: m.InstancePath, Run: *spec.RunName, Inside: m.Path, Nodes: nodes})
			}
		}
	}
	return list
}
