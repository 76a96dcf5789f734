package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
)

type eventsOptions struct {
	app    *app.App
	follow bool
	after  int64
	json   bool
	node   string
	tasks  map[core.JobID]string // what tasks of arrays are called, of those whose start was seen
}

func eventsCommand(a *app.App) *cobra.Command {
	o := &eventsOptions{app: a}
	c := &cobra.Command{
		Use: "events", Short: "show what happened", Args: cobra.NoArgs,
		Long: `Show what happened, oldest first: the last 20 events, or all after a number. You
see what concerns you; administrators see everything. Of one node they are the last 100,
however long ago. JSON is one object a line.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.Flags().Changed("after")) },
	}
	f := c.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what happens from now on")
	f.Int64Var(&o.after, "after", 0, "begin behind event `N`")
	f.StringVar(&o.node, "node", "", "only what happened to `NODE`")
	f.BoolVar(&o.json, "json", false, "print JSON, an event a line")
	return c
}

// quiet is how long no event must come before a listing without -f ends. The last event may be one that the caller does
// not get to see, so its number alone cannot tell.
const quiet = time.Second

// nodeEvents is how many events of a node are shown.
const nodeEvents = 100

func (o *eventsOptions) run(ctx context.Context, given bool) error {
	if o.after < 0 {
		return app.Usagef("--after %d: must be 0 or more", o.after)
	}
	c, err := o.app.Connect()
	if err != nil {
		return err
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	after := o.after
	if !given {
		after = max(0, info.Seq-20)
	}
	if o.node != "" {
		list, err := c.NodeEvents(ctx, core.NodeName(o.node), nodeEvents)
		if err != nil {
			return err
		}
		if len(list.Events) == 0 && !o.follow { // of one that has left there are still some
			_, err := c.Node(ctx, core.NodeName(o.node))
			return err
		}
		for i := range list.Events {
			if e := &list.Events[i]; e.Seq > o.after {
				if err := o.print(e); err != nil {
					return err
				}
				after = e.Seq
			}
		}
		if !o.follow {
			return nil
		}
	}
	if o.follow {
		return o.watch(ctx, c, after)
	}
	if after >= info.Seq {
		return nil
	}
	inner, stop := context.WithCancel(ctx)
	defer stop()
	idle := time.AfterFunc(10*quiet, stop) // the first may have to be fetched from the tables
	defer idle.Stop()
	err = c.Watch(inner, after, func(e *core.Event) error {
		idle.Reset(quiet)
		if e.Seq > info.Seq {
			return errStop
		}
		if err := o.print(e); err != nil {
			return err
		}
		if e.Seq == info.Seq {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) || inner.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// watch follows events and takes the stream up again where it broke.
func (o *eventsOptions) watch(ctx context.Context, c *client.Client, after int64) error {
	for {
		err := c.Watch(ctx, after, func(e *core.Event) error {
			after = e.Seq
			if o.node != "" && string(e.Node) != o.node {
				return nil
			}
			if err := o.print(e); err != nil {
				return &sinkError{err}
			}
			return nil
		})
		var sink *sinkError
		switch {
		case errors.As(err, &sink):
			return sink.error
		case ctx.Err() != nil:
			return ctx.Err()
		case core.CodeOf(err) != core.Unavailable:
			return err
		}
		if err := app.Wait(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

func (o *eventsOptions) print(e *core.Event) error {
	if o.json {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		_, err = o.app.Out.Write(append(plain.JSON(data), '\n'))
		return err
	}
	text := fmt.Sprintf("%-6d  %s  %-15s", e.Seq, app.Clock(e.At), e.Kind)
	if e.Job != 0 {
		text += "  job " + o.jobName(e)
	}
	if e.Node != "" {
		text += "  node " + app.Cell(string(e.Node))
	}
	if e.User != "" {
		text += "  of " + app.Cell(string(e.User))
	}
	if e.By != "" {
		text += "  by " + app.Cell(string(e.By))
	}
	if len(e.Data) > 0 {
		text += "  " + app.Cell(dataText(e.Data))
	}
	_, err := fmt.Fprintln(o.app.Out, strings.TrimRight(text, " "))
	return err
}

// jobName is a job's id, of a task its array's with its index: its own number is one that no other command shows.
func (o *eventsOptions) jobName(e *core.Event) string {
	var of struct {
		Array json.RawMessage `json:"array"`
		Task  *int32          `json:"task"`
	}
	if json.Unmarshal(e.Data, &of) == nil && of.Task != nil && len(of.Array) > 0 {
		if o.tasks == nil {
			o.tasks = map[core.JobID]string{}
		}
		o.tasks[e.Job] = fmt.Sprintf("%s_%d", of.Array, *of.Task)
	}
	if name := o.tasks[e.Job]; name != "" {
		return app.Cell(name)
	}
	return fmt.Sprint(int64(e.Job))
}

// dataText words what an event brings: {"state":"drain","flags":4} is flags=4 state=drain.
func dataText(data json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return string(data)
	}
	parts := make([]string, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text := string(fields[name])
		var word string
		if json.Unmarshal(fields[name], &word) == nil {
			if text = word; word == "" || strings.ContainsAny(word, " =\"") {
				text = strconv.Quote(word)
			}
		}
		parts = append(parts, name+"="+text)
	}
	return strings.Join(parts, " ")
}
