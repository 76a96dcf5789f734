// Package sinfo is the command that lists partitions and nodes.
package sinfo

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/column"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "all", Short: 'a'},
	{Long: "dead", Short: 'd'},
	{Long: "exact", Short: 'e'},
	{Long: "future", Short: 'F'},
	{Long: "noheader", Short: 'h'},
	{Long: "hide"},
	{Long: "iterate", Short: 'i', Arg: getopt.RequiredArg},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "long", Short: 'l'},
	{Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "nodes", Short: 'n', Arg: getopt.RequiredArg},
	{Long: "noconvert"},
	{Long: "Node", Short: 'N'},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "Format", Short: 'O', Arg: getopt.RequiredArg},
	{Long: "partition", Short: 'p', Arg: getopt.RequiredArg},
	{Long: "responding", Short: 'r'},
	{Long: "list-reasons", Short: 'R'},
	{Long: "summarize", Short: 's'},
	{Long: "sort", Short: 'S', Arg: getopt.RequiredArg},
	{Long: "states", Short: 't', Arg: getopt.RequiredArg},
	{Long: "reservation", Short: 'T'},
	{Long: "federation"},
	{Long: "local"},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
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
	q, err := newQuery(w, f)
	if err != nil {
		return w.Complain(err)
	}
	every := time.Duration(0)
	if f.Has("iterate") {
		n, err := strconv.Atoi(f.Get("iterate"))
		if err != nil || n <= 0 {
			w.Errorf("Error: invalid entry for --iterate=%s", f.Get("iterate"))
			return slurm.ExitError
		}
		every = time.Duration(n) * time.Second
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
	if cluster != "" && !f.Has("json") && !f.Has("yaml") && !f.Has("noheader") {
		fmt.Fprintf(w.Out, "CLUSTER: %s\n", cluster)
	}
	if f.Has("verbose") && !f.Has("json") && !f.Has("yaml") {
		sayOptions(w.Out, &q, f)
	}
	for {
		if code := show(ctx, w, c, q, f); code != 0 || every == 0 {
			return code
		}
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(every):
		}
	}
}

func fail(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

// conflict refuses --all beside partitions. Of an option and the other's variable the option wins.
func conflict(w *cmd.World, f cmd.Flags) error {
	const text = "Conflicting options, %s and %s, specified. Please choose one or the other."
	_, all := w.Lookup("SINFO_ALL")
	_, part := w.Lookup("SINFO_PARTITION")
	switch {
	case f.Has("all") && f.Has("partition"):
		return fail(w, text, "-a", "-p")
	case !f.Has("all") && !f.Has("partition") && all && part:
		return fail(w, text, "SINFO_ALL", "SINFO_PARTITION")
	}
	return nil
}

// validStates is the list that sinfo prints when it is given none of them.
const validStates = "unknown,down,idle,allocated,?,mixed,future,drain,drained,draining,no_respond,reserved," +
	"perfctrs,cloud,completing,powering_down,powered_down,power_down,powering_up,fail,maint,reboot,reboot^,unknown"

func newQuery(w *cmd.World, f cmd.Flags) (report.InfoQuery, error) {
	if err := conflict(w, f); err != nil {
		return report.InfoQuery{}, err
	}
	q := report.InfoQuery{
		PerNode: f.Has("Node"), Exact: f.Has("exact"), Reasons: f.Has("list-reasons"), Summary: f.Has("summarize"),
		Partitions: f.List("partition"), States: f.List("states"), Responding: f.Has("responding"),
	}
	if !f.Has("partition") && !f.Has("all") {
		q.Partitions = cmd.SplitList(w.Getenv("SINFO_PARTITION"))
	}
	for _, word := range q.States {
		for _, part := range strings.FieldsFunc(word, report.StateSign) {
			if !report.ValidNodeState(part) {
				return q, fail(w, "Bad state string: %q\n%s: error: valid states: %s", word, w.Name, validStates)
			}
		}
	}
	if f.Has("dead") {
		q.States = append(q.States, "no_respond")
	}
	if f.Has("nodes") {
		names, err := cmd.Hosts(f.Get("nodes"))
		if err != nil {
			return q, fail(w, "Invalid node name %s", f.Get("nodes"))
		}
		q.Nodes = names
	}
	all := strings.EqualFold(f.Get("Format"), "all") || strings.EqualFold(f.Get("format"), "%all")
	if f.Has("Format") && !all {
		cols, bad := column.ParseLongFormat(report.InfoFields, f.Get("Format"))
		for _, name := range bad {
			w.Errorf("Invalid job format specification: %s", name)
		}
		q.Format = cols
		return q, nil
	}
	format := f.Get("format")
	long := f.Has("long")
	switch {
	case all:
		format = report.InfoAll
	case format != "" && long:
		return q, &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{w.Name +
			": fatal: Options -o(--format) and -l(--long) are mutually exclusive. Please remove one and retry."}}
	case format != "":
	case f.Has("list-reasons") && long && !f.Has("Node"):
		format = report.InfoReasonsLong
	case f.Has("list-reasons") && !f.Has("Node"):
		format = report.InfoReasons
	case f.Has("summarize"):
		format = report.InfoSummary
	case f.Has("Node") && long:
		format = report.InfoNodeLong
	case f.Has("Node"):
		format = report.InfoNode
	case long:
		format = report.InfoLong
	default:
		format = cmp.Or(w.Getenv("SINFO_FORMAT"), report.InfoFormat)
	}
	cols, bad := column.ParseFormat(report.InfoFields, format)
	for _, letter := range bad {
		fmt.Fprintf(w.Err, "Invalid node format specification: %s\n", letter)
	}
	q.Format = cols
	return q, nil
}

// showsHidden reports whether hidden partitions are listed: all are asked for, or some by name.
func showsHidden(w *cmd.World, q report.InfoQuery, f cmd.Flags) bool {
	_, all := w.Lookup("SINFO_ALL")
	return f.Has("all") || all && !f.Has("hide") || len(q.Partitions) > 0
}

func show(ctx context.Context, w *cmd.World, c *client.Client, q report.InfoQuery, f cmd.Flags) int {
	info, err := c.Cluster(ctx)
	if err == nil {
		err = info.Withheld("partitions")
	}
	if err == nil && !showsHidden(w, q, f) {
		err = cmd.HidePartitions(ctx, c, info)
	}
	if err != nil {
		return w.LoadFailed("slurm_load_partitions", err)
	}
	list, err := c.Nodes(ctx)
	if err != nil {
		return w.LoadFailed("slurm_load_node", err)
	}
	list.Nodes = report.ComputeNodes(list.Nodes)
	for i := range list.Nodes { // programs that ask want to know whose manners to expect
		list.Nodes[i].Host.Version = cmp.Or(info.SlurmVersion, cmd.Version)
	}
	out := bufio.NewWriter(w.Out)
	defer out.Flush()
	if f.Has("reservation") {
		resv, err := c.Reservations(ctx)
		if err != nil {
			return w.LoadFailed("slurm_load_reservations", err)
		}
		if len(resv.Reservations) == 0 {
			fmt.Fprintln(out, "No reservations in the system")
			return 0
		}
		report.ListReservations(out, resv.Reservations, !f.Has("noheader"))
		return 0
	}
	if form, ok := w.Document(f); !ok {
		return slurm.ExitError
	} else if form != nil {
		return form.Print(out, cmd.NodesDocument(list.Nodes, cmd.RecordOptions(info.Name), w.Now()), info.Name, false)
	}
	if (f.Has("long") || f.Has("iterate")) && !f.Has("noheader") {
		fmt.Fprintln(out, w.Now().Format("Mon Jan 02 15:04:05 2006"))
	}
	rows := report.InfoRows(info.Partitions, list.Nodes, q)
	if (f.Has("format") || f.Has("Format")) && !mentionsPartition(q.Format) && !q.PerNode {
		rows = report.MergePartitions(rows, q)
	}
	if sort := cmp.Or(f.Get("sort"), w.Getenv("SINFO_SORT")); sort != "" {
		column.SortBy(report.InfoFields, sort, rows)
	}
	column.Fit(q.Format, rows)
	if !f.Has("noheader") {
		out.Write(column.AppendHeader(nil, q.Format))
	}
	for i := range rows {
		out.Write(column.AppendRow(nil, q.Format, &rows[i]))
	}
	return 0
}

// mentionsPartition reports whether a format prints something of partitions; without, a node is listed once.
func mentionsPartition(cols []column.Column[report.InfoRow]) bool {
	return slices.ContainsFunc(cols, func(c column.Column[report.InfoRow]) bool {
		return c.Field != nil && c.Field.Letter != 0 && strings.IndexByte("PRalLsrhgSBIpMi", c.Field.Letter) >= 0
	})
}
