package stock

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/dstack/wire"
)

type eventOptions struct {
	base
	watch, json bool
	since       string
	target      map[string]*[]string // names by kind
	within      map[string]*[]string
	types       []string
}

func eventCommand(a *app.App) *cobra.Command {
	o := &eventOptions{base: base{App: a}, target: map[string]*[]string{}, within: map[string]*[]string{}}
	c := &cobra.Command{
		Use: "event", Short: "show what happened to runs, fleets and projects", Args: app.NoSuchCommand,
		Long: `Show what happened in a project, oldest first: the last 100 events, or all since a time. bireme events
shows what happened in the cluster, also to jobs of Slurm's commands.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.projectFlag(c)
	list := &cobra.Command{
		Use: "list", Short: "show what happened", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	c.AddCommand(list)
	for _, c := range []*cobra.Command{c, list} {
		o.flags(c)
	}
	return c
}

func (o *eventOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVarP(&o.watch, "watch", "w", false, "go on with what happens from now on")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.StringVar(&o.since, "since", "", "only from `TIME` on: a duration such as 10m, or RFC 3339 with a zone")
	f.StringArrayVar(&o.types, "include-target-type", nil,
		"only about things of this `TYPE`: run, job, fleet, instance, …")
	var exclusive [2][]string
	for i, kinds := range [][]string{{"fleet", "run", "volume", "gateway", "secret"}, {"fleet", "run", "gateway"}} {
		word, into, says := "target", o.target, "only about the %s `NAME`"
		if i == 1 {
			word, into, says = "within", o.within, "only about the %s `NAME` and what is in it"
		}
		for _, k := range kinds {
			if into[k] == nil {
				into[k] = new([]string)
			}
			f.StringArrayVar(into[k], word+"-"+k, nil, fmt.Sprintf(says, k))
			exclusive[i] = append(exclusive[i], word+"-"+k)
		}
	}
	c.MarkFlagsMutuallyExclusive(exclusive[0]...)
	c.MarkFlagsMutuallyExclusive(exclusive[1]...)
}

func (o *eventOptions) run(ctx context.Context) error {
	since, err := sinceTime(o.since, o.Now())
	if err != nil {
		return err
	}
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	query, err := o.query(ctx, d)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for {
		events, err := events(ctx, d, query, since)
		if err != nil {
			return err
		}
		events = slices.DeleteFunc(events, func(e wire.Event) bool { return seen[e.ID] })
		if o.json && !o.watch {
			return o.PrintJSON(map[string]any{"project": d.Project, "events": events})
		}
		for i := range events {
			seen[events[i].ID] = true
			if _, err := fmt.Fprintln(o.Out, eventLine(&events[i])); err != nil {
				return err
			}
		}
		if !o.watch {
			return nil
		}
		if n := len(events); n > 0 {
			since = events[n-1].RecordedAt
		}
		if err := app.Wait(ctx, time.Second); err != nil {
			return err
		}
	}
}

// sinceTime reads a time: a duration before now, or a moment with a zone; empty stays empty.
func sinceTime(text string, now time.Time) (string, error) {
	if text == "" {
		return "", nil
	}
	t, err := app.Since(text, now)
	if err != nil {
		return "", err
	}
	return t.UTC().Format(time.RFC3339Nano), nil
}

// query turns names into the ids that the API takes.
func (o *eventOptions) query(ctx context.Context, d client.Dstack) (map[string]any, error) {
	in := map[string]any{"limit": 100, "ascending": true}
	if len(o.types) > 0 {
		in["include_target_types"] = o.types
	}
	given := false
	for word, by := range map[string]map[string]*[]string{"target": o.target, "within": o.within} {
		for kind, names := range by {
			if len(*names) == 0 {
				continue
			}
			given = true
			ids, err := idsOf(ctx, d, kind, *names)
			if err != nil {
				return nil, err
			}
			in[word+"_"+kind+"s"] = ids
		}
	}
	if !given {
		var p wire.Project
		if err := d.All(ctx, "projects/"+d.Project+"/get", nil, &p); err != nil {
			return nil, err
		}
		in["within_projects"] = []string{p.ProjectID}
	}
	return in, nil
}

func idsOf(ctx context.Context, d client.Dstack, kind string, names []string) ([]string, error) {
	var ids []string
	for _, n := range names {
		var x struct {
			ID string `json:"id"`
		}
		in := map[string]any{"name": n}
		if kind == "run" {
			in = map[string]any{"run_name": n}
		}
		if err := d.Post(ctx, kind+"s/get", in, &x); err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, n, err)
		}
		ids = append(ids, x.ID)
	}
	return ids, nil
}

// events prints the last page, or all since a time.
func events(ctx context.Context, d client.Dstack, query map[string]any, since string) ([]wire.Event, error) {
	var all []wire.Event
	if since == "" {
		query["ascending"] = false
		err := d.All(ctx, "events/list", query, &all)
		slices.Reverse(all)
		return all, err
	}
	query["ascending"] = true
	query["prev_recorded_at"] = since
	delete(query, "prev_id")
	for {
		var page []wire.Event
		if err := d.All(ctx, "events/list", query, &page); err != nil {
			return nil, err
		}
		all = append(all, page...)
		if len(page) < 100 {
			return all, nil
		}
		last := &page[len(page)-1]
		query["prev_recorded_at"], query["prev_id"] = last.RecordedAt, last.ID
	}
}

// eventLine is an event as dstack words it.
func eventLine(e *wire.Event) string {
	at := e.RecordedAt
	if t, ok := wire.ParseTime(at); ok {
		at = t.Go().Local().Format("2006-01-02 15:04:05")
	}
	line := "[" + at + "] "
	if e.ActorUser != nil {
		line += "[👤" + *e.ActorUser + "] "
	}
	targets := make([]string, len(e.Targets))
	for i := range e.Targets {
		targets[i] = e.Targets[i].Type + " " + e.Targets[i].Name
	}
	return plain.Message(line + "[" + strings.Join(targets, ", ") + "] " + e.Message)
}
