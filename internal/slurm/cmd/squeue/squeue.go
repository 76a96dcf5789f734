// Package squeue is the command that lists jobs in the queue.
package squeue

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/column"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Key: "account", Long: "accounts", Short: 'A', Arg: getopt.RequiredArg},
	{Key: "account", Long: "account", Arg: getopt.RequiredArg},
	{Long: "all", Short: 'a'},
	{Long: "array", Short: 'r'},
	{Long: "array-unique"},
	{Long: "federation"},
	{Long: "hide"},
	{Long: "local"},
	{Long: "noheader", Short: 'h'},
	{Long: "iterate", Short: 'i', Arg: getopt.RequiredArg},
	{Key: "jobs", Long: "jobs", Short: 'j', Arg: getopt.OptionalArg},
	{Key: "jobs", Long: "job", Arg: getopt.OptionalArg},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "long", Short: 'l'},
	{Long: "licenses", Short: 'L', Arg: getopt.RequiredArg},
	{Key: "clusters", Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Key: "clusters", Long: "cluster", Arg: getopt.RequiredArg},
	{Long: "me"},
	{Long: "name", Short: 'n', Arg: getopt.RequiredArg},
	{Long: "noconvert"},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "Format", Short: 'O', Arg: getopt.RequiredArg},
	{Key: "partition", Long: "partitions", Short: 'p', Arg: getopt.RequiredArg},
	{Key: "partition", Long: "partition", Arg: getopt.RequiredArg},
	{Long: "priority", Short: 'P'},
	{Long: "qos", Short: 'q', Arg: getopt.RequiredArg},
	{Long: "reservation", Short: 'R', Arg: getopt.RequiredArg},
	{Long: "sibling"},
	{Long: "sort", Short: 'S', Arg: getopt.RequiredArg},
	{Long: "start"},
	{Key: "steps", Long: "steps", Short: 's', Arg: getopt.OptionalArg},
	{Key: "steps", Long: "step", Arg: getopt.OptionalArg},
	{Key: "states", Long: "states", Short: 't', Arg: getopt.RequiredArg},
	{Key: "states", Long: "state", Arg: getopt.RequiredArg},
	{Key: "users", Long: "users", Short: 'u', Arg: getopt.RequiredArg},
	{Key: "users", Long: "user", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Key: "nodelist", Long: "nodelist", Short: 'w', Arg: getopt.RequiredArg},
	{Key: "nodelist", Long: "node", Arg: getopt.RequiredArg},
	{Key: "nodelist", Long: "nodes", Arg: getopt.RequiredArg},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "help"},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	debug.SetGCPercent(800) // it lives for milliseconds and holds one listing
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	cluster, ok := w.OnlyOurs(ctx, c, f.List("clusters"))
	if !ok {
		return slurm.ExitError
	}
	q, err := newQuery(ctx, w, c, f)
	if err != nil {
		return w.Complain(err)
	}
	if cluster != "" && q.document == nil && !q.noHeader {
		fmt.Fprintf(w.Out, "CLUSTER: %s\n", cluster)
	}
	if f.Has("verbose") && q.document == nil {
		sayOptions(w.Out, w, f, q)
		q.verbose = true
	}
	for {
		if code := q.show(ctx, w, c); code != 0 || q.every == 0 {
			return code
		}
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(q.every):
		}
	}
}

// show prints the listing once.
func (q *query) show(ctx context.Context, w *cmd.World, c *client.Client) int {
	now := w.Now()
	q.q.Since, q.q.Recent = time.Time{}, q.q.History
	if q.q.History {
		q.q.Since = now.Add(-cmd.MinJobAge)
	}
	out := bufio.NewWriterSize(w.Out, 64<<10)
	defer out.Flush()
	if q.stamp && q.document == nil {
		fmt.Fprintln(out, now.Format("Mon Jan 02 15:04:05 2006"))
	}
	if q.steps {
		return q.showSteps(ctx, w, c, out)
	}
	rows, err := q.load(ctx, c)
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	if q.document != nil {
		return showDocument(ctx, w, c, out, q.document, rows)
	}
	q.order(rows)
	if q.verbose {
		fmt.Fprintf(out, "last_update_time=%d records=%d\n", now.Unix(), len(rows))
	}
	var line []byte
	if !q.noHeader {
		line = column.AppendHeader(line[:0], q.cols)
		out.Write(line)
	}
	if bad := badSort(q.sort); bad != "" {
		out.Flush()
		w.Errorf("Invalid sort specification: %s", bad)
		return slurm.ExitError
	}
	for i := range rows {
		for row := range q.lines(&rows[i]) {
			line = column.AppendRow(line[:0], q.cols, row)
			out.Write(line)
		}
	}
	return 0
}

// load fetches the rows, in short form when that is all the columns need.
func (q *query) load(ctx context.Context, c *client.Client) ([]report.QueueRow, error) {
	if q.noRows {
		return nil, nil
	}
	if err := cmp.Or(q.hide(ctx, c), q.nameCluster(ctx, c)); err != nil {
		return nil, err
	}
	full := q.document != nil || q.q.History ||
		column.NeedsFull(q.cols) || q.sortNeedsFull() || len(q.resv)+len(q.licenses) > 0
	var rows []report.QueueRow
	if full {
		list, err := c.Jobs(ctx, q.q)
		if err != nil {
			return nil, err
		}
		for i := range list.Jobs {
			j := &list.Jobs[i]
			if j.Spec == nil {
				continue
			}
			b := client.BriefOf(j, list.Now)
			rows = append(rows, report.QueueRow{Brief: &b, Job: j, Now: list.Now})
		}
	} else {
		list, err := c.Briefs(ctx, q.q)
		if err != nil {
			return nil, err
		}
		rows = make([]report.QueueRow, len(list.Jobs))
		for i := range list.Jobs {
			rows[i] = report.QueueRow{Brief: &list.Jobs[i], Now: list.Now}
		}
	}
	rows = slices.DeleteFunc(rows, func(r report.QueueRow) bool { return !q.wants(&r) })
	if len(rows) == 0 && q.single != "" {
		// An id that nobody knows is an error; one that is known but filtered out is not.
		if _, err := c.Job(ctx, q.single); err != nil {
			if core.CodeOf(err) == core.NotFound {
				err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
			}
			return nil, err
		}
	}
	for i := range rows {
		rows[i].Room, rows[i].Site = q.room, &q.site
	}
	if (q.array || len(q.tasks) > 0) && !q.expandsLate() {
		rows = q.expand(rows)
	}
	if q.perPartition {
		rows = perPartition(rows)
	}
	return rows, nil
}

// perPartition makes a row of every partition that a pending job may start in.
func perPartition(rows []report.QueueRow) []report.QueueRow {
	var out []report.QueueRow
	for i := range rows {
		names := strings.Split(string(rows[i].Partition), ",")
		if rows[i].State != core.Pending || len(names) < 2 {
			out = append(out, rows[i])
			continue
		}
		for _, name := range names {
			r, b := rows[i], *rows[i].Brief
			b.Partition = core.PartitionName(name)
			r.Brief = &b
			out = append(out, r)
		}
	}
	return out
}

func (q *query) wants(r *report.QueueRow) bool {
	if !q.states.Match(r.State, r.Flags) {
		return false
	}
	if !q.isShown(r) {
		return false
	}
	if len(q.qos) > 0 && !slices.Contains(q.qos, string(r.QOS)) {
		return false
	}
	if len(q.licenses) > 0 && !usesLicense(r.Job.Spec, q.licenses) {
		return false
	}
	return len(q.resv) == 0 || slices.Contains(q.resv, r.Job.Spec.More().Reservation)
}

// expandsLate reports whether arrays are expanded while they are printed: where no key of the order tells their tasks
// apart, they stay together, and no row of each has to be made and sorted.
func (q *query) expandsLate() bool {
	return q.array && q.document == nil && !q.perPartition && !strings.ContainsAny(q.sort, "iAFK")
}

// lines are the rows that are printed of one: itself, or with -r one for each task that it stands for, which is good
// until the next.
func (q *query) lines(row *report.QueueRow) iter.Seq[*report.QueueRow] {
	return func(yield func(*report.QueueRow) bool) {
		if row.Tasks == "" || !q.expandsLate() {
			yield(row)
			return
		}
		a, err := grammar.ParseArray(row.Tasks)
		if err != nil {
			yield(row)
			return
		}
		one, b := *row, *row.Brief
		b.Tasks, one.Brief = "", &b
		for task := range a.Tasks.All() {
			if b.Task = int32(task); !yield(&one) {
				return
			}
		}
	}
}

// expand makes a row of every task that an array's record stands for; without -r of those that -j names.
func (q *query) expand(rows []report.QueueRow) []report.QueueRow {
	var out []report.QueueRow
	for i := range rows {
		a, err := grammar.ParseArray(rows[i].Tasks)
		if rows[i].Tasks == "" || err != nil || !q.array && slices.Contains(q.q.IDs, fmt.Sprint(rows[i].Base)) {
			out = append(out, rows[i])
			continue
		}
		for task := range a.Tasks.All() {
			if !q.array && !slices.Contains(q.tasks, fmt.Sprintf("%d_%d", rows[i].Base, task)) {
				continue
			}
			r, b := rows[i], *rows[i].Brief
			b.Tasks, b.Task = "", int32(task)
			r.Brief = &b
			out = append(out, r)
		}
	}
	return out
}

func (q *query) sortNeedsFull() bool {
	_, full := column.SortKeys(report.QueueFields, q.sort)
	return full
}

func (q *query) order(rows []report.QueueRow) {
	cmps, _ := column.SortKeys(report.QueueFields, q.sort)
	byID := report.QueueFields[0].Compare
	slices.SortStableFunc(rows, func(a, b report.QueueRow) int {
		for _, c := range cmps {
			if n := c(&a, &b); n != 0 {
				return n
			}
		}
		return byID(&a, &b)
	})
}
