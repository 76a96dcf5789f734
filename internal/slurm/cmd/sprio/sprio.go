// Package sprio is the command that shows what the priorities of waiting jobs are made of.
package sprio

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
	"bireme.dev/bireme/internal/slurm/report/column"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "federation"},
	{Long: "noheader", Short: 'h'},
	{Key: "jobs", Long: "jobs", Short: 'j', Arg: getopt.OptionalArg},
	{Key: "jobs", Long: "job", Arg: getopt.OptionalArg},
	{Long: "local"},
	{Long: "long", Short: 'l'},
	{Key: "clusters", Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Key: "clusters", Long: "cluster", Arg: getopt.RequiredArg},
	{Long: "norm", Short: 'n'},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "partition", Short: 'p', Arg: getopt.RequiredArg},
	{Long: "sibling"},
	{Long: "sort", Short: 'S', Arg: getopt.RequiredArg},
	{Key: "user", Long: "user", Short: 'u', Arg: getopt.RequiredArg},
	{Key: "user", Long: "users", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "weights", Short: 'w'},
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
	q, err := newQuery(ctx, w, c, f)
	if err != nil {
		return w.Complain(err)
	}
	return q.show(ctx, w, c)
}

// query is what the user wants to see.
type query struct {
	client.PrioritiesQuery
	named    bool // jobs were named
	noRows   bool // a filter that nothing can match
	noHeader bool
	weights  bool
	verbose  bool
	long     bool
	norm     bool
	users    bool // a column of users
	format   string
	sort     string
}

func newQuery(ctx context.Context, w *cmd.World, c *client.Client, f cmd.Flags) (*query, error) {
	q := &query{
		noHeader: f.Has("noheader"), weights: f.Has("weights"), verbose: f.Has("verbose"), long: f.Has("long"),
		norm: f.Has("norm"), users: f.Has("user"), format: f.Get("format"), sort: f.Get("sort"),
	}
	if q.format == "" {
		q.format = w.Getenv("SPRIO_FORMAT")
	}
	q.Partitions, q.IDs = f.List("partition"), f.List("jobs")
	// -j takes its value with a blank as well, though it is optional: the operands are its.
	words := cmd.SplitList(strings.Join(f.Operands, ","))
	if len(words) > 0 && (!f.Has("jobs") || len(q.IDs) > 0) {
		return nil, complaint("%s: error: Unrecognized option: %s\n%s", w.Name, f.Operands[0],
			strings.TrimSuffix(manual.Of(w.Name, parser).Usage(), "\n"))
	}
	q.IDs = append(q.IDs, words...)
	for _, id := range q.IDs {
		if n, err := strconv.ParseUint(id, 10, 63); err != nil || n == 0 {
			return nil, complaint("%s: error: Invalid job id: %s", w.Name, id)
		}
	}
	for _, name := range f.List("user") {
		user, ok := cmd.FindUser(ctx, c, name)
		if !ok {
			w.Errorf("Invalid user: %s\n", name)
			q.noRows = q.noRows || len(q.Users) == 0
			continue
		}
		q.Users, q.noRows = append(q.Users, user), false
	}
	q.named = len(q.IDs) > 0
	return q, nil
}

func complaint(format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

func (q *query) show(ctx context.Context, w *cmd.World, c *client.Client) int {
	list, err := c.Priorities(ctx, q.PrioritiesQuery)
	if err != nil {
		return w.LoadFailed("Couldn't get priority factors from controller", err)
	}
	if list.Weights == nil {
		fmt.Fprintf(w.Err, "You are not running a supported priority plugin\n(priority/basic).\n"+
			"Only 'priority/multifactor' is supported.\n")
		return slurm.ExitError
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return w.LoadFailed("Couldn't get cluster information", err)
	}
	format := q.format
	if format == "" {
		format = q.defaultFormat(list.Weights)
	}
	cols, bad := column.ParseFormat(fields, format)
	for _, letter := range bad {
		w.Errorf("Invalid job format specification: %s", letter)
	}
	rows := q.rows(list, cluster.Name)
	if q.named && len(rows) == 0 && !q.weights && !q.noRows {
		fmt.Fprintln(w.Out, "Unable to find jobs matching user/id(s) specified")
		return 0
	}
	out := bufio.NewWriter(w.Out)
	defer out.Flush()
	if q.verbose {
		q.printOptions(out)
	}
	if !q.noHeader {
		out.Write(column.AppendHeader(nil, cols))
	}
	if key := column.BadSortKey(fields, q.sort); key != "" {
		out.Flush()
		w.Errorf("Invalid sort specification: %s", key)
		return slurm.ExitError
	}
	for i := range rows {
		out.Write(column.AppendRow(nil, cols, &rows[i]))
	}
	return 0
}

// rows are the lines of the table: the weights alone, or the jobs in order.
func (q *query) rows(list *client.PriorityList, cluster string) []row {
	if q.weights {
		return []row{{Cluster: cluster, Weights: list.Weights}}
	}
	if q.noRows {
		return nil
	}
	rows := make([]row, 0, len(list.Jobs))
	for i := range list.Jobs {
		rows = append(rows, row{Job: &list.Jobs[i], Cluster: cluster})
	}
	keys, _ := column.SortKeys(fields, q.sort)
	slices.SortStableFunc(rows, func(a, b row) int {
		for _, compare := range keys {
			if n := compare(&a, &b); n != 0 {
				return n
			}
		}
		return cmp.Compare(a.Job.ID, b.Job.ID)
	})
	return rows
}

// defaultFormat has a column for each factor with a weight; the long one has all.
func (q *query) defaultFormat(weights []client.Factor) string {
	format := "%.15i %9r"
	if q.users || q.long {
		format += " %.8u"
	}
	if q.norm {
		format += " %10y"
	} else {
		format += " %.10Y %.10S"
	}
	tres := false
	for _, at := range []struct {
		name   string
		letter byte
	}{
		{"age", 'A'}, {"assoc", 'B'}, {"fairshare", 'F'}, {"job_size", 'J'}, {"partition", 'P'}, {"qos", 'Q'},
	} {
		has := q.long
		for i := range weights {
			has = has || weights[i].Name == at.name && weights[i].Weight != 0
			tres = tres || strings.HasPrefix(weights[i].Name, "tres ") && weights[i].Weight != 0
		}
		if letter := at.letter; has {
			if q.norm {
				format += " %10" + string(rune(letter+'a'-'A'))
			} else {
				format += " %.10" + string(rune(letter))
			}
		}
	}
	switch {
	case q.long && q.norm:
		return format + " %20t"
	case q.long:
		return format + " %.11N %.20T"
	case tres && q.norm:
		return format + " %20t"
	case tres:
		return format + " %.20T"
	}
	return format
}

// printOptions is the block that -v begins with.
func (q *query) printOptions(out *bufio.Writer) {
	text := func(words ...string) string { return cmp.Or(strings.Join(words, ","), "(null)") }
	flag := "0"
	if len(q.IDs) > 0 {
		flag = "1"
	}
	cmd.WriteBlock(out, 10, []cmd.Pair{
		{Name: "format", Value: text(q.format)},
		{Name: "job_flag", Value: flag},
		{Name: "jobs", Value: text(q.IDs...)},
		{Name: "partition", Value: text(q.Partitions...)},
		{Name: "users", Value: text(q.Users...)},
		{Name: "verbose", Value: "1"},
	})
	fmt.Fprint(out, "\n\n")
}
