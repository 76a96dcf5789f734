// Package sstat is the command that shows what running steps use.
package sstat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report/table"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "allsteps", Short: 'a'},
	{Long: "helpformat", Short: 'e'},
	{Long: "help", Short: 'h'},
	{Long: "pidformat", Short: 'i'},
	{Long: "jobs", Short: 'j', Arg: getopt.RequiredArg},
	{Long: "noheader", Short: 'n'},
	{Long: "noconvert"},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "parsable", Short: 'p'},
	{Long: "parsable2", Short: 'P'},
	{Long: "usage"},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// asked is a step that was asked for; without a name it is the first one, or all.
type asked struct{ job, step string }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	if f.Has("helpformat") {
		table.PrintFieldNames(w.Out, fields, 19)
		return 0
	}
	format := f.Get("format")
	switch {
	case format != "":
	case f.Has("pidformat"):
		format = pidFormat
	default:
		format = defaultFormat
	}
	cols, bad := table.ParseFormat(fields, format)
	if strings.EqualFold(format, "all") {
		bad = format
	}
	if bad != "" {
		w.Errorf("Invalid field requested: %q", bad)
		return slurm.ExitError
	}
	list, ok := parseSteps(w, append(f.List("jobs"), cmd.SplitList(strings.Join(f.Operands, ","))...))
	if !ok {
		return slurm.ExitError
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	table := table.Table[row]{
		Columns: cols, NoHeader: f.Has("noheader"), Parsable: f.Has("parsable"), Parsable2: f.Has("parsable2"),
	}
	table.Print(w.Out, nil)
	table.NoHeader = true
	for _, a := range list {
		for _, r := range rows(ctx, w, c, a, f.Has("allsteps")) {
			r.Convert = !f.Has("noconvert")
			table.Print(w.Out, []row{r})
		}
	}
	return 0
}

// parseSteps reads JOB[.STEP] words.
func parseSteps(w *cmd.World, words []string) (list []asked, ok bool) {
	if len(words) == 0 {
		w.Errorf("You didn't give me any jobs to stat.")
		return nil, false
	}
	fatal := func(format string, args ...any) ([]asked, bool) {
		fmt.Fprintf(w.Err, "%s: fatal: %s\n", w.Name, fmt.Sprintf(format, args...))
		return nil, false
	}
	for _, word := range words {
		job, step, hasStep := strings.Cut(word, ".")
		if job == "" || job[0] < '0' || job[0] > '9' {
			return fatal("Bad job/step specified: %s", word)
		}
		if hasStep {
			step, _, _ = strings.Cut(step, ".") // of a het step
			if _, err := strconv.Atoi(step); err != nil && step != "batch" && step != "extern" && step != "interactive" {
				return fatal("Bad step specified: %s", job)
			}
		}
		job, _, _ = strings.Cut(job, "+")
		list = append(list, asked{job, step})
	}
	return list, true
}

// rows asks for the steps meant by one word; what cannot be shown is complained of, and the others are.
func rows(ctx context.Context, w *cmd.World, c *client.Client, a asked, all bool) (out []row) {
	found, err := c.Job(ctx, a.job)
	if err != nil || len(found.Jobs) == 0 {
		if err != nil && core.CodeOf(err) != core.NotFound {
			w.Errorf("%s", slurm.ErrorText(err))
		}
		w.Errorf("couldn't get steps for job %s", a.job)
		return nil
	}
	j := &found.Jobs[0]
	names := []string{a.step}
	if a.step == "" {
		names = runningSteps(j, found.Steps, all)
		if names == nil {
			w.Errorf("No steps running for job %s", a.job)
			return nil
		}
	}
	for _, name := range names {
		u, err := c.StepUsage(ctx, strconv.FormatInt(int64(j.ID), 10), name)
		switch {
		case err == nil:
			out = append(out, row{ID: a.job + "." + name, Usage: u, Batch: name == "batch"})
		case core.CodeOf(err) == core.NotFound:
			w.Errorf("StepId=%s.%s not found running.", a.job, name)
		default:
			w.Errorf("problem getting step_layout for StepId=%s.%s: %s", a.job, name, slurm.ErrorText(err))
		}
	}
	return out
}

// runningSteps are the steps that run: the first numbered one, or with all the script's and every numbered one. nil:
// the job does not run.
func runningSteps(j *client.Job, steps []core.Step, all bool) []string {
	if j.State != core.Running && j.State != core.Suspended {
		return nil
	}
	numbers := []int{}
	for i := range steps {
		if s := &steps[i]; s.Job == j.ID && s.Attempt == j.Attempt && !s.State.Final() && s.ID >= 0 {
			numbers = append(numbers, int(s.ID))
		}
	}
	slices.Sort(numbers)
	names := []string{}
	if all && j.Spec.Batches() {
		names = append(names, "batch")
	}
	for _, n := range numbers {
		if names = append(names, strconv.Itoa(n)); !all {
			break
		}
	}
	return names
}
