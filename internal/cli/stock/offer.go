package stock

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/jobs"
	"bireme.dev/bireme/internal/cli/screen"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

type offerOptions struct {
	base
	flags                   jobs.RunFlags
	format                  string
	json, full, unallocated bool
	groupBy                 []string
	most                    int
	profile                 string
	noProfile               bool
}

func offerCommand(a *app.App) *cobra.Command {
	o := &offerOptions{base: base{App: a}}
	c := &cobra.Command{
		Use: "offer", Short: "list the nodes that could run something", Args: cobra.NoArgs,
		Long: `List the nodes that have what the options ask for, those that are idle first. Without options all nodes
that the project may use are listed. --group-by counts GPUs instead.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.projectFlag(c)
	o.flags.Register(c)
	f := c.Flags()
	formatFlags(c, &o.format, &o.json)
	f.StringSliceVar(&o.groupBy, "group-by", nil, "group by gpu, backend, region and count, `KEYS`")
	f.IntVar(&o.most, "max-offers", 50, "show at most `N` offers")
	f.BoolVar(&o.full, "full-offers", false, "show whole instances")
	f.BoolVar(&o.unallocated, "unallocated", false, "show what is not allocated of them")
	f.StringVar(&o.profile, "profile", "", "use the profile `NAME` of .dstack/profiles.yml")
	f.BoolVar(&o.noProfile, "no-profile", false, "use no profile, not even the default one")
	c.MarkFlagsMutuallyExclusive("profile", "no-profile")
	return c
}

// formatFlags are --format and --json.
func formatFlags(c *cobra.Command, format *string, json *bool) {
	c.Flags().StringVar(format, "format", "plain", "`FORM` of the output: plain or json")
	c.Flags().BoolVar(json, "json", false, "print JSON")
}

// checkFormat reads the two as one.
func checkFormat(format string, json *bool) error {
	switch format {
	case "plain":
	case "json":
		*json = true
	default:
		return app.Usagef("--format %s: must be plain or json", format)
	}
	return nil
}

// anyRun is a run that asks for nothing in particular.
const anyRun = `{"type":"task","image":"scratch","commands":[":"],"user":"root","resources":{"cpu":"1..",` +
	`"memory":"0GB..","gpu":"0..","disk":null}}`

func (o *offerOptions) run(ctx context.Context) error {
	if err := checkFormat(o.format, &o.json); err != nil {
		return err
	}
	if o.most < 1 || o.most > 10_000 {
		return app.Usagef("--max-offers %d: must be from 1 to 10000", o.most)
	}
	cfg, err := config.ReadJSON([]byte(anyRun))
	if err != nil {
		return err
	}
	if err := o.flags.Override(cfg); err != nil {
		return err
	}
	spec := &convert.Spec{Configuration: *cfg}
	if spec.Profile, err = jobs.FindProfile(o.App, o.profile, o.noProfile); err != nil {
		return err
	}
	raw, err := spec.Completed().JSON()
	if err != nil {
		return err
	}
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	if len(o.groupBy) > 0 {
		return o.grouped(ctx, d, spec, raw)
	}
	plan := new(wire.RunPlan)
	err = d.Post(ctx, "runs/get_plan", map[string]any{
		"run_spec": raw, "max_offers": o.most, "full_offers": o.full, "unallocated_resources": o.unallocated,
		"for_offers_only": true,
	}, plan)
	if err != nil {
		return err
	}
	return o.print(plan, spec)
}

func (o *offerOptions) print(plan *wire.RunPlan, spec *convert.Spec) error {
	job := &wire.JobPlan{Offers: []wire.Offer{}}
	if len(plan.JobPlans) > 0 {
		job = &plan.JobPlans[0]
	}
	if o.json {
		var requirements any
		if job.JobSpec != nil {
			requirements = job.JobSpec.Requirements
		}
		return o.PrintJSON(map[string]any{
			"project": plan.ProjectName, "user": plan.User, "requirements": requirements, "offers": job.Offers,
			"total_offers": job.TotalOffers,
		})
	}
	var head app.Table
	head.Row("Project", plan.ProjectName)
	head.Row("Resources", screen.Wanted(&spec.Configuration.Run().Resources))
	if err := head.Write(o.Out); err != nil {
		return err
	}
	fmt.Fprintln(o.Out)
	if len(job.Offers) == 0 {
		o.Note("no node has that; `%s offer` without options lists all", o.Name())
		return nil
	}
	if err := screen.Offers(job).Write(o.Out); err != nil {
		return err
	}
	if more := screen.Shown(job); more != "" {
		o.Note("%s; --max-offers %d shows all", more, job.TotalOffers)
	}
	return nil
}

// grouped lists GPUs, by what they have in common.
func (o *offerOptions) grouped(ctx context.Context, d client.Dstack, spec *convert.Spec, raw json.RawMessage) error {
	keys := []string{}
	gpu := false
	for _, k := range o.groupBy {
		switch k {
		case "gpu":
			gpu = true
		case "backend", "region", "count":
			keys = append(keys, k)
		default:
			return app.Usagef("--group-by %s: must be gpu, backend, region or count", k)
		}
	}
	if !gpu {
		return app.Usagef("--group-by %s: gpu is missing: offers are grouped by GPU, then by others",
			strings.Join(o.groupBy, ","))
	}
	var list wire.GpuList
	if err := d.Post(ctx, "gpus/list", map[string]any{"run_spec": raw, "group_by": keys}, &list); err != nil {
		return err
	}
	if o.json {
		return o.PrintJSON(map[string]any{
			"project": d.Project, "requirements": spec.Configuration.Run().Resources, "group_by": o.groupBy,
			"gpus": list.GPUs,
		})
	}
	t := app.Table{{"#", "GPU", "COUNT", "SPOT", "$/GPU", "BACKEND", " "}}
	for i := range list.GPUs {
		g := &list.GPUs[i]
		name := g.Name
		if g.MemoryMiB > 0 {
			name += fmt.Sprintf(":%dGB", g.MemoryMiB/1024)
		}
		count := fmt.Sprint(g.Count.Min)
		if g.Count.Max != g.Count.Min {
			count += ".." + fmt.Sprint(g.Count.Max)
		}
		backend := g.Backend
		if backend == "" {
			backend = strings.Join(g.Backends, ", ")
		}
		t.Row(fmt.Sprint(i+1), name, count, strings.Join(g.Spot, ", "), screen.Price(g.Price.Min),
			screen.Backend(backend, g.Region), strings.Join(g.Availability, ", "))
	}
	return t.Write(o.Out)
}
