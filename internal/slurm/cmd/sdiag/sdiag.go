// Package sdiag is the command that shows how the server fares.
package sdiag

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report/record"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "all", Short: 'a'},
	{Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "reset", Short: 'r'},
	{Long: "sort-by-id", Short: 'i'},
	{Long: "sort-by-time", Short: 't'},
	{Long: "sort-by-time2", Short: 'T'},
	{Long: "version", Short: 'V'},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "help"},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if _, ok := w.OnlyOurs(ctx, c, f.List("clusters")); !ok {
		return slurm.ExitError
	}
	if f.Has("reset") {
		if err := c.ResetDiag(ctx); err != nil {
			return w.LoadFailed("slurm_reset_statistics error", err)
		}
		fmt.Fprintln(w.Out, "Reset scheduling statistics")
		return 0
	}
	form, ok := w.Document(f)
	if !ok {
		return slurm.ExitError
	}
	d, err := c.Diag(ctx)
	if err != nil {
		return w.LoadFailed("slurm_get_statistics error", err)
	}
	out := bufio.NewWriter(w.Out)
	defer out.Flush()
	if form != nil {
		return form.Print(out, record.Diag(d), "", false)
	}
	printJobs(out, d)
	printPasses(out, d)
	fmt.Fprintf(out, "\nLatency for 1000 calls to gettimeofday(): %d microseconds\n", clockCost().Microseconds())
	printCalls(out, d, f)
	return 0
}

// stamp writes a time as sdiag does.
func stamp(t core.Time) string {
	if t == 0 {
		return "N/A"
	}
	return fmt.Sprintf("%s (%d)", t.Go().Local().Format("Mon Jan 02 15:04:05 2006"), t.Go().Unix())
}

func printJobs(out io.Writer, d *client.Diag) {
	stars := strings.Repeat("*", 55)
	fmt.Fprintf(out, "%s\nsdiag output at %s\nData since      %s\n%s\n", stars, stamp(d.Now), stamp(d.Since), stars)
	fmt.Fprintf(out, "Server thread count:  %d\nAgent queue size:     %d\nAgent count:          0\n"+
		"Agent thread count:   0\nDBD Agent queue size: 0\n\n", 1+d.Streams, d.Waiting)
	fmt.Fprintf(out, "Jobs submitted: %d\nJobs started:   %d\nJobs completed: %d\nJobs canceled:  %d\n"+
		"Jobs failed:    %d\n\n", d.Jobs.Submitted, d.Jobs.Started, d.Jobs.Completed, d.Jobs.Canceled, d.Jobs.Failed)
	fmt.Fprintf(out, "Job states ts:  %s\nJobs pending:   %d\nJobs running:   %d\n\n", stamp(d.Now), d.Pending, d.Running)
}

// printPasses tells of the planner. One pass does the work of Slurm's main scheduler and of its backfill, so that both
// blocks show the same passes.
func printPasses(out io.Writer, d *client.Diag) {
	p := &d.Passes
	mean, minute := int64(0), int64(0)
	if p.Count > 0 {
		mean = p.Total / p.Count
	}
	if passed := d.Now.Sub(d.Since).Minutes(); passed > 0 {
		minute = int64(float64(p.Count) / passed)
	}
	fmt.Fprintf(out, "Main schedule statistics (microseconds):\n"+
		"\tLast cycle:   %d\n\tMax cycle:    %d\n\tTotal cycles: %d\n\tMean cycle:   %d\n\tMean depth cycle:  %d\n"+
		"\tCycles per minute: %d\n\tLast queue length: %d\n\n",
		p.Last, p.Longest, p.Count, mean, d.Pending, minute, d.Pending)
	fmt.Fprintf(out, "Backfilling stats\n"+
		"\tTotal backfilled jobs (since last slurm start): %d\n"+
		"\tTotal backfilled jobs (since last stats cycle start): %d\n"+
		"\tTotal backfilled heterogeneous job components: 0\n"+
		"\tTotal cycles: %d\n\tLast cycle when: %s\n\tLast cycle: %d\n\tMax cycle:  %d\n\tMean cycle: %d\n"+
		"\tLast depth cycle: %d\n\tLast depth cycle (try sched): %d\n\tDepth Mean: %d\n\tDepth Mean (try depth): %d\n"+
		"\tLast queue length: %d\n\tQueue length mean: %d\n",
		p.Backfilled, p.BackfilledSince, p.Count, stamp(p.LastAt), p.Last, p.Longest, mean,
		d.Pending, d.Pending, d.Pending, d.Pending, d.Pending, d.Pending)
}

// clockCost is how long 1000 readings of the clock take.
func clockCost() time.Duration {
	began := time.Now()
	for range 1000 {
		_ = time.Now()
	}
	return time.Since(began)
}

func printCalls(out io.Writer, d *client.Diag, f cmd.Flags) {
	calls := rpcs(d.Calls)
	average := func(c *rpc) int64 { return c.total / max(1, c.count) }
	slices.SortStableFunc(calls, func(a, b rpc) int {
		switch {
		case f.Has("sort-by-id"):
			return cmp.Compare(a.id, b.id)
		case f.Has("sort-by-time"):
			return cmp.Compare(b.total, a.total)
		case f.Has("sort-by-time2"):
			return cmp.Compare(average(&b), average(&a))
		}
		return cmp.Compare(b.count, a.count)
	})
	fmt.Fprintln(out, "\nRemote Procedure Call statistics by message type")
	for i := range calls {
		c := &calls[i]
		fmt.Fprintf(out, "\t%-40s(%5d) count:%-6d ave_time:%-6d total_time:%d\n", c.name, c.id, c.count, average(c), c.total)
	}
	fmt.Fprintln(out, "\nRemote Procedure Call statistics by user")
	for _, u := range d.Users {
		fmt.Fprintf(out, "\t%-16s(%8d) count:%-6d ave_time:%-6d total_time:%d\n",
			u.Name, u.UID, u.Count, u.Total/max(1, u.Count), u.Total)
	}
	fmt.Fprint(out, "\nPending RPC statistics\n\tNo pending RPCs\n")
}
