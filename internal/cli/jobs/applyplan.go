package jobs

import (
	"context"
	"encoding/json"
	"fmt"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/screen"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
)

// planned is what the server says that applying a run would do.
type planned struct {
	*wire.RunPlan
	spec *convert.Spec // with the server's defaults
	was  *convert.Spec // of the live run of that name; nil: there is none
	raw  json.RawMessage
}

// maxOffers is how many offers a plan shows.
const maxOffers = 3

// plan asks the server where the run could be and what there is under its name. It is nil where the server does not
// plan for this caller: then the submission alone tells what is wrong.
func (o *applyOptions) plan(ctx context.Context, c *client.Client, s *convert.Spec) (*planned, error) {
	s.RunName = &o.name
	spec, err := s.Completed().JSON()
	if err != nil {
		return nil, err
	}
	p := &planned{RunPlan: new(wire.RunPlan)}
	err = o.server(c).Post(ctx, "runs/get_plan", map[string]any{
		"run_spec": spec, "max_offers": o.maxOffers, "full_offers": o.fullOffers, "unallocated_resources": o.unallocated,
	}, p.RunPlan)
	switch code := core.CodeOf(err); {
	case code == core.NotFound, code == core.Denied:
		return nil, nil
	case code == core.Invalid && !s.Contained(core.RuntimeProcess):
		return nil, nil // dstack's rules are for containers; the submission has those of processes
	}
	if err != nil {
		return nil, err
	}
	if p.spec, err = convert.Stored(p.EffectiveRunSpec); err != nil {
		return nil, fmt.Errorf("the server's plan cannot be read: %w", err)
	}
	p.raw = p.EffectiveRunSpec
	if cur := p.CurrentResource; cur != nil && !finished(cur.Status) {
		if p.was, err = convert.Stored(cur.RunSpec); err != nil {
			return nil, fmt.Errorf("run %s cannot be read: %w", o.name, err)
		}
	}
	return p, nil
}

// finished reports whether a run has ended.
func finished(status string) bool {
	return status == wire.RunDone || status == wire.RunFailed || status == wire.RunTerminated
}

// contained reports whether the server has the run in a container.
func (p *planned) contained() bool {
	return len(p.JobPlans) > 0 && p.JobPlans[0].JobSpec != nil && p.JobPlans[0].JobSpec.ImageName != screen.ImageProcess
}

// print shows the plan: what is asked for, and where it could be.
func (o *applyOptions) print(ctx context.Context, c *client.Client, p *planned) error {
	w := o.screen()
	t := screen.Properties(p.RunPlan, p.spec, o.verbose)
	if o.unaccounted {
		t.Row("Note", "in a container, because you have no account on the nodes")
	}
	err := t.Write(w)
	fmt.Fprintln(w)
	if err != nil || len(p.JobPlans) == 0 {
		return err
	}
	job := &p.JobPlans[0] // all nodes of a run ask for the same; of groups these are the first one's
	if len(job.Offers) == 0 {
		fmt.Fprintln(w, plain.Message("No node has what is asked for: "+
			screen.Wanted(&p.spec.Configuration.Run().Resources)))
		if job = o.anything(ctx, c, p); job == nil {
			fmt.Fprintln(w)
			return nil
		}
		fmt.Fprintln(w, "The nodes that there are:")
	}
	err = screen.Offers(job).Write(w)
	if more := screen.Shown(job); more != "" {
		fmt.Fprintln(w, "...\n"+more)
	}
	fmt.Fprintln(w)
	return err
}

// anything returns the nodes that the run may be on, whatever they have; nil: there are none.
func (o *applyOptions) anything(ctx context.Context, c *client.Client, p *planned) *wire.JobPlan {
	spec := *p.spec
	res := &spec.Configuration.Run().Resources // the plan is not needed any more for what it asks
	was := *res
	defer func() { *res = was }()
	one, none := int64(1), config.Float(0)
	*res = config.Resources{CPU: config.CPU{Count: config.Range{Min: &one}}, Memory: config.SizeRange{Min: &none}}
	raw, err := spec.JSON()
	if err != nil {
		return nil
	}
	all := new(wire.RunPlan)
	err = o.server(c).Post(ctx, "runs/get_plan", map[string]any{
		"run_spec": raw, "max_offers": o.maxOffers, "for_offers_only": true,
	}, all)
	if err != nil || len(all.JobPlans) == 0 || len(all.JobPlans[0].Offers) == 0 {
		return nil
	}
	return &all.JobPlans[0]
}

// The answers to what becomes of a live run.
type decision int

const (
	nothing  decision = iota // the user does not want it
	keep                     // all is as it should be
	create                   // a new run
	await                    // a new run, once the old one has ended, which is being stopped
	override                 // the live run is stopped first
	update                   // the live run changes in place
)

// decide says what applying does and asks whether it may.
func (o *applyOptions) decide(p *planned) (decision, error) {
	if p == nil || p.was == nil {
		if !o.app.Confirm(o.yes, "Submit the run %s?", o.name) {
			return nothing, o.app.Declined("nothing was submitted")
		}
		return create, nil
	}
	w := o.screen()
	if p.CurrentResource.Status == wire.RunTerminating {
		fmt.Fprintf(w, "Run %s is being stopped. The new one is submitted when it has ended.\n", o.name)
		if !o.app.Confirm(o.yes, "Submit the run %s?", o.name) {
			return nothing, o.app.Declined("nothing was submitted")
		}
		return await, nil
	}
	changes := screen.Changes(p.was, p.spec)
	state := runPhrase(p.CurrentResource.Status)
	inPlace := p.Action == wire.ActionUpdate && len(changes) > 0
	switch {
	case len(changes) == 0:
		fmt.Fprintf(w, "Run %s %s and has no changes.\n", o.name, state)
		if (o.yes || !o.app.Terminal) && !o.force {
			fmt.Fprintln(w, "Use --force to stop it and start it again.")
			return keep, nil
		}
	case inPlace:
		fmt.Fprintf(w, "Run %s %s. These changes are made in place:\n", o.name, state)
	default:
		fmt.Fprintf(w, "Run %s %s. These changes need a new start:\n", o.name, state)
	}
	for _, c := range changes {
		fmt.Fprintln(w, plain.Message("  "+c))
	}
	if !o.yes && !o.app.Terminal {
		return nothing, core.Errorf(core.Conflict, "run %s %s; stop it with `bireme stop %s`, or give -y to change it",
			o.name, state, o.name)
	}
	question, does := "Stop and override the run?", override
	if inPlace {
		question, does = "Update the run?", update
	}
	if !o.app.Confirm(o.yes, "%s", question) {
		return nothing, o.app.Declined("run " + o.name + " was left alone")
	}
	return does, nil
}

// update changes the live run in place.
func (o *applyOptions) update(ctx context.Context, c *client.Client, p *planned) (*wire.Run, error) {
	run := new(wire.Run)
	err := o.server(c).Post(ctx, "runs/apply", map[string]any{
		"plan": map[string]any{"run_spec": p.RunSpec, "current_resource": p.CurrentResource}, "force": o.force,
	}, run)
	return run, err
}

// getRun asks for a run by its name.
func getRun(ctx context.Context, c *client.Client, project, name string) (*wire.Run, error) {
	run := new(wire.Run)
	err := client.Dstack{Client: c, Project: project}.Post(ctx, "runs/get", map[string]any{"run_name": name}, run)
	return run, err
}

// unaccounted reports whether the run is in a container only because its user has no account on the nodes.
func unaccounted(ctx context.Context, c *client.Client, s *convert.Spec, project string) bool {
	if !s.Undecided() {
		return false
	}
	list, err := c.Projects(ctx)
	return err == nil && core.RuntimeIn(core.ProjectName(project), list.Find) == core.RuntimeProcess
}

// printRun prints the run as JSON.
func (o *applyOptions) printRun(ctx context.Context, a *app.App, c *client.Client) error {
	run, err := getRun(ctx, c, o.project, o.name)
	if err != nil {
		return err
	}
	return a.PrintJSON(run)
}

// server is where the plan comes from.
func (o *applyOptions) server(c *client.Client) client.Dstack {
	return client.Dstack{Client: c, Project: o.project}
}
