package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

// completionTime bounds how long a shell waits for names.
const completionTime = 2 * time.Second

type nameFunc func(ctx context.Context, c *client.Client) ([]string, error)

// completions has the shell complete runs, jobs and nodes where commands take them.
func (a *App) completions(root *cobra.Command) {
	for path, list := range map[string]nameFunc{
		"logs": runsAndJobs, "ssh": runsAndJobs, "stop": runsAndJobs, "why": runsAndJobs, "metrics": runsAndJobs,
		"checkpoint": runsAndJobs, "attach": runsAndJobs, "run get": runsAndJobs, "delete": runsAndJobs,
		"fleet get": fleetNames, "fleet delete": fleetNames,
		"drain": nodeNames, "resume": nodeNames, "down": nodeNames, "nodes": nodeNames,
	} {
		c, _, err := root.Find(strings.Fields(path))
		if err != nil || c == root {
			continue
		}
		c.ValidArgsFunction = func(cmd *cobra.Command, given []string, begins string) ([]string, cobra.ShellCompDirective) {
			if cmd.Args != nil && cmd.Args(cmd, append(slices.Clone(given), begins)) != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.names(cmd.Context(), list, begins), cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// names are those that begin so. A server that does not answer gives none: nobody wants its error in the middle of a
// line.
func (a *App) names(ctx context.Context, list nameFunc, begins string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	c, err := a.Connect()
	if err != nil {
		return nil
	}
	all, err := list(ctx, c)
	if err != nil {
		return nil
	}
	all = slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, begins) })
	slices.Sort(all)
	return slices.Compact(all)
}

func runsAndJobs(ctx context.Context, c *client.Client) ([]string, error) {
	var out []string
	in, err := app.Project(ctx, c, "")
	if err != nil {
		return nil, err
	}
	runs, err := c.Runs(ctx, in, "")
	if err != nil {
		return nil, err
	}
	for i := range runs.Runs {
		out = append(out, runs.Runs[i].Name)
	}
	jobs, err := c.Jobs(ctx, client.JobsQuery{Limit: 200, Newest: true})
	if err != nil {
		return nil, err
	}
	for i := range jobs.Jobs {
		out = append(out, strconv.FormatInt(int64(jobs.Jobs[i].ID), 10))
	}
	return out, nil
}

func nodeNames(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Nodes {
		out = append(out, string(list.Nodes[i].Name))
	}
	return out, nil
}

func fleetNames(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := c.Fleets(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range list.Fleets {
		out = append(out, list.Fleets[i].Name)
	}
	return out, nil
}
