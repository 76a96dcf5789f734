package stock

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/jobs"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
)

type deleteOptions struct {
	base
	file string
	yes  bool
}

func deleteCommand(a *app.App) *cobra.Command {
	o := &deleteOptions{base: base{App: a}}
	c := &cobra.Command{
		Use: "delete [-f FILE] [RUN...]", Aliases: []string{"destroy"}, Short: "delete ended runs, or what a file names",
		Long: `Delete runs that have ended, or the run, fleet or volume that a configuration names. Without -f and names it
takes .dstack.yml of the current folder. A deleted run is not listed any more; the records of its jobs stay.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
	}
	o.projectFlag(c)
	c.Flags().StringVarP(&o.file, "file", "f", "", "the configuration, `FILE`")
	c.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	return c
}

func (o *deleteOptions) run(ctx context.Context, names []string) error {
	kind := "run"
	switch {
	case len(names) > 0 && o.file != "":
		return app.Usagef("delete: give names or -f, not both")
	case len(names) == 0:
		file, src, err := jobs.ReadConfiguration(o.App, "delete", o.file)
		if err != nil {
			return err
		}
		cfg, err := config.Read(src)
		if err != nil {
			return jobs.InFile(err, file)
		}
		switch cfg.Kind {
		case config.KindTask, config.KindDevEnvironment, config.KindService:
		case config.KindFleet:
			kind = "fleet"
		case config.KindVolume:
			kind = "volume"
		case config.KindGateway, config.KindPreset:
			return notYet("gateways and presets")
		}
		if cfg.Name() == "" {
			return app.Usagef("delete: %s has no name: nobody can tell what to delete", file)
		}
		names = []string{cfg.Name()}
	}
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := o.one(ctx, d, kind, n); err != nil {
			return err
		}
	}
	return nil
}

func (o *deleteOptions) one(ctx context.Context, d client.Dstack, kind, name string) error {
	get, drop := map[string]any{"name": name}, map[string]any{"names": []string{name}}
	if kind == "run" {
		get, drop = map[string]any{"run_name": name}, map[string]any{"runs_names": []string{name}}
	}
	if err := d.Post(ctx, kind+"s/get", get, nil); err != nil {
		if core.CodeOf(err) == core.NotFound {
			return core.Errorf(core.NotFound, "there is no %s %s in project %s", kind, name, d.Project)
		}
		return err
	}
	if !o.Confirm(o.yes, "Delete the %s %s?", kind, name) {
		return o.Declined("nothing was deleted")
	}
	if err := d.Post(ctx, kind+"s/delete", drop, nil); err != nil {
		return err
	}
	for kind != "run" { // agents of a fleet are ended and removed; a node removes a volume
		err := d.Post(ctx, kind+"s/get", get, nil)
		if core.CodeOf(err) == core.NotFound {
			break
		}
		if err != nil {
			return err
		}
		if err := app.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(o.Out, "%s %s deleted\n", kind, name)
	return err
}
