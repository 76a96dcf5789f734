// Package squeue is the command that lists jobs in the queue.
package squeue

import (
	"bufio"
	"context"
	"fmt"
	"os/user"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

const usage = `Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [-p partition] [--qos qos]
              [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-w nodes] [-ahjlrsv]
`

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "account", Short: 'A', Arg: getopt.RequiredArg},
	{Long: "all", Short: 'a'}, {Long: "array", Short: 'r'}, {Long: "array-unique"}, {Long: "federation"}, {Long: "hide"}, {Long: "local"},
	{Long: "noheader", Short: 'h'},
	{Long: "iterate", Short: 'i', Arg: getopt.RequiredArg},
	{Key: "jobs", Long: "jobs", Short: 'j', Arg: getopt.OptionalArg}, {Key: "jobs", Long: "job", Arg: getopt.OptionalArg},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "long", Short: 'l'},
	{Long: "licenses", Short: 'L', Arg: getopt.RequiredArg},
	{Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "me"},
	{Long: "name", Short: 'n', Arg: getopt.RequiredArg},
	{Long: "noconvert"},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Long: "Format", Short: 'O', Arg: getopt.RequiredArg},
	{Long: "partition", Short: 'p', Arg: getopt.RequiredArg},
	{Long: "priority", Short: 'P'},
	{Long: "qos", Short: 'q', Arg: getopt.RequiredArg},
	{Long: "reservation", Short: 'R', Arg: getopt.RequiredArg},
	{Long: "sibling"},
	{Long: "sort", Short: 'S', Arg: getopt.RequiredArg},
	{Long: "start"},
	{Key: "steps", Long: "steps", Short: 's', Arg: getopt.OptionalArg}, {Key: "steps", Long: "step", Arg: getopt.OptionalArg},
	{Key: "states", Long: "states", Short: 't', Arg: getopt.RequiredArg}, {Key: "states", Long: "state", Arg: getopt.RequiredArg},
	{Key: "users", Long: "users", Short: 'u', Arg: getopt.RequiredArg}, {Key: "users", Long: "user", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "nodelist", Short: 'w', Arg: getopt.RequiredArg},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "help"}, {Long: "usage"},
}}

// query is what the user wants to see.
type query struct {
	q          client.JobsQuery
	states     slurm.StateFilter
	qos        []string
	resv       []string
	cols       []slurm.Column[slurm.QueueRow]
	sort       string
	noHeader   bool
	stamp      bool // print the time first
	array      bool
	noRows     bool // a filter that nothing can match
	steps      bool
	stepIDs    []string
	stepFormat string
	json       bool
	start      bool
	room       int
	every      time.Duration
	single     string // the only job asked for
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	debug.SetGCPercent(800) // it lives for milliseconds and holds one listing
	f, ok := w.Parse(parser, args)
	if !ok {
		return slurm.ExitError
	}
	switch {
	case f.Has("version"):
		return w.PrintVersion()
	case f.Has("help"), f.Has("usage"):
		fmt.Fprint(w.Out, usage)
		return 0
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	q, err := newQuery(ctx, w, c, f)
	if err != nil {
		return w.Complain(err)
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

func newQuery(ctx context.Context, w *cmd.World, c *client.Client, f cmd.Flags) (*query, error) {
	get := func(option, variable string) string {
		if f.Has(option) {
			return f.Get(option)
		}
		return w.Getenv(variable)
	}
	q := &query{
		noHeader: f.Has("noheader"), array: f.Has("array") || f.Has("array-unique") || w.Getenv("SQUEUE_ARRAY") != "",
		steps: f.Has("steps"), stepIDs: f.List("steps"), json: f.Has("json"), start: f.Has("start"), room: grammar.ArrayText,
		qos: cmd.SplitList(get("qos", "SQUEUE_QOS")), resv: f.List("reservation"), stamp: f.Has("long") && !f.Has("noheader"),
	}
	if text, ok := w.Lookup("SLURM_BITSTR_LEN"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			q.room = n
		}
	}
	if f.Has("iterate") {
		n, err := strconv.Atoi(f.Get("iterate"))
		if err != nil || n <= 0 {
			return nil, complaint(w, "Error: --iterate=%s", f.Get("iterate"))
		}
		q.every, q.stamp = time.Duration(n)*time.Second, true
	}
	q.q.Projects = cmd.SplitList(get("account", "SQUEUE_ACCOUNT"))
	q.q.Partitions = cmd.SplitList(get("partition", "SQUEUE_PARTITION"))
	q.q.Names = cmd.SplitList(get("name", "SQUEUE_NAMES"))
	q.q.IDs = f.List("jobs")
	// -j and -s take their value with a blank as well, though it is optional; so the operands are theirs.
	switch words := cmd.SplitList(strings.Join(f.Operands, ",")); {
	case len(words) == 0:
	case f.Has("jobs") && len(q.q.IDs) == 0:
		q.q.IDs = words
	case f.Has("steps") && len(q.stepIDs) == 0:
		q.stepIDs = words
	default:
		return nil, complaint(w, "Unrecognized option: %s", f.Operands[0])
	}
	for _, id := range q.q.IDs {
		if !validID(id) {
			return nil, complaint(w, "Invalid job id: %s", id)
		}
	}
	if len(q.q.IDs) == 1 {
		q.single = q.q.IDs[0]
	}
	if f.Has("nodelist") {
		names, err := cmd.Hosts(f.Get("nodelist"))
		if err != nil {
			return nil, complaint(w, "Invalid node name %s", f.Get("nodelist"))
		}
		q.q.Nodes = names
	}
	if err := q.setUsers(ctx, w, c, f.Has("me"), cmd.SplitList(get("users", "SQUEUE_USERS"))); err != nil {
		return nil, err
	}
	if err := q.setStates(w, cmd.SplitList(get("states", "SQUEUE_STATES"))); err != nil {
		return nil, err
	}
	return q, q.setFormat(w, f)
}

func complaint(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

func validID(id string) bool {
	base, task, _ := strings.Cut(id, "_")
	if _, err := strconv.ParseUint(base, 10, 63); err != nil {
		return false
	}
	return task == "" || task[0] == '[' || task[0] >= '0' && task[0] <= '9'
}

// setUsers finds the users meant. A name nobody has is told, and matches nothing.
func (q *query) setUsers(ctx context.Context, w *cmd.World, c *client.Client, me bool, names []string) error {
	if me {
		who, err := c.Whoami(ctx)
		if err != nil {
			return &slurm.Complaint{Lines: []string{"slurm_load_jobs error: " + slurm.ErrorText(err)}, Exit: slurm.ExitError}
		}
		names = []string{string(who.User)}
	}
	for _, name := range names {
		if n, err := strconv.ParseUint(name, 10, 32); err == nil {
			if u, err := user.LookupId(strconv.FormatUint(n, 10)); err == nil {
				name = u.Username
			}
		} else if _, err := user.Lookup(name); err != nil && !me {
			if _, err := c.User(ctx, core.UserName(name)); core.CodeOf(err) == core.NotFound {
				w.Errorf("Invalid user: %s\n", name)
				q.noRows = true
				continue
			}
		}
		q.q.Users = append(q.q.Users, name)
		q.noRows = false
	}
	return nil
}

func (q *query) setStates(w *cmd.World, words []string) error {
	if len(words) == 0 {
		words = []string{"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD"}
		if q.start {
			words = []string{"PENDING"}
		}
	}
	filter, bad := slurm.ParseStates(words)
	if bad != "" {
		return &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
			w.Name + ": error: Invalid job state specified: " + bad,
			w.Name + ": error: Valid job states include: " + slurm.ValidStates + "\n",
		}}
	}
	q.states = filter
	if filter.Ended() {
		q.q.History = true
	}
	return nil
}

func (q *query) setFormat(w *cmd.World, f cmd.Flags) error {
	format, long := f.Get("format"), f.Get("Format")
	if !f.Has("format") && !f.Has("Format") {
		format, long = w.Getenv("SQUEUE_FORMAT"), w.Getenv("SQUEUE_FORMAT2")
	}
	q.sort = w.Getenv("SQUEUE_SORT")
	switch {
	case format != "" || long != "":
	case q.steps:
		format = slurm.QueueStepFormat
	case q.start:
		format = slurm.QueueStartFormat
	case f.Has("long"):
		format = slurm.QueueLongFormat
	default:
		format = slurm.QueueFormat
	}
	if q.start && q.sort == "" {
		q.sort = "S"
	}
	if f.Has("sort") {
		q.sort = f.Get("sort")
	}
	if q.sort == "" {
		q.sort = "P,t,-p"
	}
	if format == "%all" {
		format = allFields()
	}
	if long != "" {
		cols, err := slurm.ParseLongFormat(slurm.QueueFields, long)
		if err != nil {
			return complaint(w, "%v", err)
		}
		q.cols = cols
		return nil
	}
	if q.steps {
		q.stepFormat = format // steps have fields of their own; see steps.go
		return nil
	}
	cols, bad := slurm.ParseFormat(slurm.QueueFields, format)
	for _, letter := range bad {
		w.Errorf("Invalid job format specification: %s", letter)
	}
	q.cols = cols
	return nil
}

func allFields() string {
	var words []string
	for _, f := range slurm.QueueFields {
		if f.Letter != 0 {
			words = append(words, "%"+string(rune(f.Letter)))
		}
	}
	return strings.Join(words, "|")
}

// show prints the listing once.
func (q *query) show(ctx context.Context, w *cmd.World, c *client.Client) int {
	now := w.Now()
	q.q.Since = time.Time{}
	if q.q.History {
		q.q.Since = now.Add(-cmd.MinJobAge)
	}
	out := bufio.NewWriterSize(w.Out, 64<<10)
	defer out.Flush()
	if q.stamp && !q.json {
		fmt.Fprintln(out, now.Format("Mon Jan 02 15:04:05 2006"))
	}
	if q.steps {
		return q.showSteps(ctx, w, c, out)
	}
	rows, err := q.load(ctx, c)
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	if q.json {
		return showJSON(ctx, w, c, out, rows)
	}
	q.order(rows)
	var line []byte
	if !q.noHeader {
		line = slurm.AppendHeader(line[:0], q.cols)
		out.Write(line)
	}
	for i := range rows {
		line = slurm.AppendRow(line[:0], q.cols, &rows[i])
		out.Write(line)
	}
	return 0
}

// load fetches the rows, in short form when that is all the columns need.
func (q *query) load(ctx context.Context, c *client.Client) ([]slurm.QueueRow, error) {
	if q.noRows {
		return nil, nil
	}
	full := q.json || q.q.History || slurm.NeedsFull(q.cols) || q.sortNeedsFull() || len(q.resv) > 0
	var rows []slurm.QueueRow
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
			rows = append(rows, slurm.QueueRow{Brief: &b, Job: j, Now: list.Now})
		}
	} else {
		list, err := c.Briefs(ctx, q.q)
		if err != nil {
			return nil, err
		}
		rows = make([]slurm.QueueRow, len(list.Jobs))
		for i := range list.Jobs {
			rows[i] = slurm.QueueRow{Brief: &list.Jobs[i], Now: list.Now}
		}
	}
	rows = slices.DeleteFunc(rows, func(r slurm.QueueRow) bool { return !q.wants(&r) })
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
		rows[i].Room = q.room
	}
	if q.array {
		rows = expand(rows)
	}
	return rows, nil
}

func (q *query) wants(r *slurm.QueueRow) bool {
	if !q.states.Match(r.State, r.Flags) {
		return false
	}
	if len(q.qos) > 0 && !slices.Contains(q.qos, string(r.QOS)) {
		return false
	}
	return len(q.resv) == 0 || slices.Contains(q.resv, r.Job.Spec.More().Reservation)
}

// expand makes a row of every task that an array's record stands for.
func expand(rows []slurm.QueueRow) []slurm.QueueRow {
	var out []slurm.QueueRow
	for i := range rows {
		if rows[i].Tasks == "" {
			out = append(out, rows[i])
			continue
		}
		a, err := grammar.ParseArray(rows[i].Tasks)
		if err != nil {
			out = append(out, rows[i])
			continue
		}
		for task := range a.Tasks.All() {
			r, b := rows[i], *rows[i].Brief
			b.Tasks, b.Task = "", int32(task)
			r.Brief = &b
			out = append(out, r)
		}
	}
	return out
}

// keys reads the sort fields; unknown letters are passed over, as Slurm does after a complaint of its own.
func (q *query) keys() (cmps []func(a, b *slurm.QueueRow) int, full bool) {
	for _, word := range strings.Split(q.sort, ",") {
		word = strings.TrimSpace(word)
		down := strings.HasPrefix(word, "-")
		word = strings.TrimLeft(word, "+-#")
		for i := range slurm.QueueFields {
			f := &slurm.QueueFields[i]
			if len(word) != 1 || f.Letter != word[0] {
				continue
			}
			full = full || f.Full
			compare := f.Compare
			if compare == nil {
				compare = func(a, b *slurm.QueueRow) int { return strings.Compare(f.Value(a), f.Value(b)) }
			}
			if down {
				up := compare
				compare = func(a, b *slurm.QueueRow) int { return up(b, a) }
			}
			cmps = append(cmps, compare)
		}
	}
	return cmps, full
}

func (q *query) sortNeedsFull() bool { _, full := q.keys(); return full }

func (q *query) order(rows []slurm.QueueRow) {
	cmps, _ := q.keys()
	byID := slurm.QueueFields[0].Compare
	slices.SortStableFunc(rows, func(a, b slurm.QueueRow) int {
		for _, c := range cmps {
			if n := c(&a, &b); n != 0 {
				return n
			}
		}
		return byID(&a, &b)
	})
}
