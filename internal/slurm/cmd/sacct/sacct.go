// Package sacct is the command that shows jobs from the accounting records.
package sacct

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
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "allusers", Short: 'a'},
	{Key: "accounts", Long: "accounts", Short: 'A', Arg: getopt.RequiredArg},
	{Key: "accounts", Long: "account", Arg: getopt.RequiredArg},
	{Long: "array"},
	{Long: "brief", Short: 'b'},
	{Long: "batch-script", Short: 'B'},
	{Long: "completion", Short: 'c'},
	{Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "allclusters", Short: 'L'},
	{Long: "local"},
	{Long: "federation"},
	{Long: "constraints", Short: 'C', Arg: getopt.RequiredArg},
	{Long: "delimiter", Arg: getopt.RequiredArg},
	{Long: "duplicates", Short: 'D'},
	{Long: "endtime", Short: 'E', Arg: getopt.RequiredArg},
	{Long: "starttime", Short: 'S', Arg: getopt.RequiredArg},
	{Long: "env-vars"},
	{Long: "file", Short: 'f', Arg: getopt.RequiredArg},
	{Long: "flags", Short: 'F', Arg: getopt.RequiredArg},
	{Long: "format", Short: 'o', Arg: getopt.RequiredArg},
	{Key: "gid", Long: "gid", Short: 'g', Arg: getopt.RequiredArg},
	{Key: "gid", Long: "group", Arg: getopt.RequiredArg},
	{Long: "help", Short: 'h'},
	{Long: "helpformat", Short: 'e'},
	{Long: "usage"},
	{Long: "jobs", Short: 'j', Arg: getopt.RequiredArg},
	{Key: "jobs", Long: "job", Arg: getopt.RequiredArg},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "yaml", Arg: getopt.OptionalArg},
	{Long: "timelimit-min", Short: 'k', Arg: getopt.RequiredArg},
	{Long: "timelimit-max", Short: 'K', Arg: getopt.RequiredArg},
	{Long: "long", Short: 'l'},
	{Long: "name", Arg: getopt.RequiredArg},
	{Long: "ncpus", Short: 'I', Arg: getopt.RequiredArg},
	{Long: "nnodes", Short: 'i', Arg: getopt.RequiredArg},
	{Long: "nodelist", Short: 'N', Arg: getopt.RequiredArg},
	{Long: "noheader", Short: 'n'},
	{Long: "noconvert"},
	{Long: "parsable", Short: 'p'},
	{Long: "parsable2", Short: 'P'},
	{Long: "partition", Short: 'r', Arg: getopt.RequiredArg},
	{Long: "qos", Short: 'q', Arg: getopt.RequiredArg},
	{Long: "reason", Short: 'R', Arg: getopt.RequiredArg},
	{Key: "state", Long: "state", Short: 's', Arg: getopt.RequiredArg},
	{Long: "truncate", Short: 'T'},
	{Long: "units", Arg: getopt.RequiredArg},
	{Key: "user", Long: "uid", Short: 'u', Arg: getopt.RequiredArg},
	{Key: "user", Long: "user", Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "wckeys", Short: 'W', Arg: getopt.RequiredArg},
	{Long: "whole-hetjob", Arg: getopt.OptionalArg},
	{Long: "associations", Short: 'x', Arg: getopt.RequiredArg},
	{Long: "allocations", Short: 'X'},
}}

// query is what the user wants to see.
type query struct {
	q       client.JobsQuery
	states  *report.StateFilter
	stepIDs map[string][]string // steps asked for by job; a job without is shown whole
	qos     []string
	cols    []report.AcctColumn
	units   report.Units
	only    []func(j *client.Job) bool // filters that the server does not know

	whole     string // --whole-hetjob: yes, no or not said
	elsewhere bool   // only jobs of other clusters are wanted

	start, end time.Time // of the window; a zero start is the beginning of time
	stateNames string
}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, ok := w.Parse(parser, args)
	if !ok {
		return slurm.ExitError
	}
	switch {
	case f.Has("version"):
		return w.PrintVersion()
	case f.Has("helpformat"):
		listFields(w)
		return 0
	case f.Has("help"):
		return w.PrintHelp(parser)
	case f.Has("usage"):
		return w.PrintUsage(parser)
	}
	if len(f.Operands) > 0 {
		w.Errorf("Unknown arguments:")
		for _, word := range f.Operands {
			w.Errorf(" %s", word)
		}
		return slurm.ExitError
	}
	q, err := newQuery(w, f)
	if err != nil {
		return w.Complain(err)
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if names := f.List("clusters"); len(names) > 0 { // of one that nobody knows there are no records
		info, err := c.Cluster(ctx)
		if err != nil {
			return w.LoadFailed("slurm_load_ctl_conf error", err)
		}
		q.elsewhere = !slices.Contains(names, info.Name) && !slices.Contains(names, "all")
	}
	if f.Has("verbose") {
		q.sayWindow(w)
	}
	if f.Has("batch-script") || f.Has("env-vars") {
		return showBlobs(ctx, w, c, q, f.Has("env-vars"))
	}
	form, ok := w.Document(f)
	if !ok {
		return slurm.ExitError
	}
	rows, err := q.load(ctx, w, c, f)
	if err != nil {
		return w.Complain(err)
	}
	out := bufio.NewWriter(w.Out)
	defer out.Flush()
	if form != nil {
		cluster := ""
		if len(rows) > 0 {
			cluster = rows[0].Cluster
		}
		body := schema.New("openapi_slurmdbd_jobs_resp").Set("jobs", report.AcctRecords(rows, cmd.RecordOptions(cluster)))
		return form.Print(out, body, cluster, true)
	}
	q.print(out, rows, f)
	return 0
}

func listFields(w *cmd.World) {
	for i := 0; i < report.NumListedFields; i++ {
		end := " "
		if i%4 == 3 || i == report.NumListedFields-1 {
			end = "\n"
		}
		fmt.Fprintf(w.Out, "%-19s%s", report.AcctFields[i].Name, end)
	}
}

func newQuery(w *cmd.World, f cmd.Flags) (*query, error) {
	q := &query{stepIDs: map[string][]string{}, qos: f.AllList("qos")}
	format := cmp.Or(f.All("format"), w.Getenv("SACCT_FORMAT"))
	switch {
	case f.Has("format"), format != "" && !f.Has("brief") && !f.Has("long"):
	case f.Has("brief"):
		format = report.AcctBriefFormat
	case f.Has("long"):
		format = report.AcctLongFormat
	default:
		format = report.AcctFormat
	}
	var bad string
	if q.cols, bad = report.ParseAcctFormat(format); bad != "" {
		return nil, fail(w, "Invalid field requested: %q", bad)
	}
	q.q = client.JobsQuery{
		History: true, Projects: f.AllList("accounts"), Partitions: f.AllList("partition"), Names: f.AllList("name"),
		Users: f.AllList("user"),
	}
	if f.Has("nodelist") {
		names, err := cmd.Hosts(f.All("nodelist"))
		if err != nil {
			return nil, fail(w, "Invalid node name %s", f.All("nodelist"))
		}
		q.q.Nodes = names
	}
	for _, id := range f.AllList("jobs") {
		job, step, hasStep := strings.Cut(id, ".")
		if job == "" || job[0] < '0' || job[0] > '9' {
			return nil, fatal(w, "Bad job/step specified: %s", id)
		}
		if job == "0" { // no filter by id
			continue
		}
		if hasStep {
			q.stepIDs[job] = append(q.stepIDs[job], step)
		}
		if !slices.Contains(q.q.IDs, job) {
			q.q.IDs = append(q.q.IDs, job)
		}
	}
	if words := f.AllList("state"); len(words) > 0 {
		states, bad := report.ParseStates(words)
		if bad != "" {
			return nil, &slurm.Complaint{
				Lines: []string{w.Name + ": fatal: unrecognized job state value '" + bad + "'"}, Exit: slurm.ExitError,
			}
		}
		q.states = &states
		names := make([]string, len(words))
		for i, word := range words {
			names[i] = strings.ToUpper(word)
			if st, ok := core.ParseJobState(word); ok {
				names[i] = st.String()
			}
		}
		q.stateNames = strings.Join(names, ",")
	}
	if q.whole = strings.ToLower(f.Get("whole-hetjob")); f.Has("whole-hetjob") && q.whole != "yes" && q.whole != "no" {
		if q.whole != "" {
			return nil, fail(w, "Invalid --whole-hetjob value %q. Valid values: [yes|no].", f.Get("whole-hetjob"))
		}
		q.whole = "yes"
	}
	if err := q.setFilters(w, f); err != nil {
		return nil, err
	}
	return q, q.setWindow(w, f)
}

func fatal(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": fatal: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

func fail(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

// load fetches the rows: jobs by submission, each followed by its steps.
func (q *query) load(ctx context.Context, w *cmd.World, c *client.Client, f cmd.Flags) ([]report.AcctRow, error) {
	for i, u := range q.q.Users {
		name, ok := cmd.FindUser(ctx, c, u)
		if !ok {
			return nil, fail(w, "Invalid user id: %s", u)
		}
		q.q.Users[i] = name
	}
	if len(q.q.Users) == 0 && len(q.q.IDs) == 0 && !f.Has("allusers") {
		who, err := c.Whoami(ctx)
		if err != nil {
			return nil, err
		}
		if !who.Admin {
			q.q.Users = []string{string(who.User)}
		}
	}
	if err := q.checkQOS(ctx, w, c); err != nil || q.elsewhere {
		return nil, err
	}
	list, err := q.jobs(ctx, c)
	if core.CodeOf(err) == core.NotFound {
		list, err = &client.JobList{}, nil
	}
	if err != nil {
		return nil, err
	}
	cluster := ""
	if slices.ContainsFunc(q.cols, func(c report.AcctColumn) bool { return c.Name == "Cluster" }) || f.Has("json") ||
		f.Has("yaml") {
		info, err := c.Cluster(ctx)
		if err != nil {
			return nil, err
		}
		cluster = info.Name
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j client.Job) bool {
		return j.Spec == nil || !q.inWindow(&j) || len(q.qos) > 0 && !slices.Contains(q.qos, string(j.Spec.QOS)) ||
			slices.ContainsFunc(q.only, func(keep func(*client.Job) bool) bool { return !keep(&j) })
	})
	slices.SortStableFunc(list.Jobs, func(a, b client.Job) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(base(&a), base(&b)), cmp.Compare(task(&a), task(&b)),
			cmp.Compare(a.ID, b.ID))
	})
	steps, err := cmd.Steps(ctx, c, list)
	if err != nil {
		return nil, err
	}
	byJob := map[core.JobID][]report.StepRow{}
	for _, s := range steps {
		byJob[s.Job.ID] = append(byJob[s.Job.ID], s)
	}
	var rows []report.AcctRow
	add := func(j *client.Job, steps []report.StepRow) {
		row := report.AcctRow{Job: j, Cluster: cluster, Now: list.Now, Derived: derived(steps)}
		only := q.stepIDs[strconv.FormatInt(int64(j.ID), 10)]
		if only == nil {
			rows = append(rows, row)
		}
		if f.Has("allocations") {
			return
		}
		for k := range steps {
			s := &steps[k]
			if only == nil || slices.Contains(only, s.Name()) {
				rows = append(rows, report.AcctRow{Job: j, Step: s, Cluster: cluster, Now: list.Now})
			}
		}
	}
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if j.Earlier != nil && f.Has("duplicates") {
			if j.Alloc == nil && j.Steps > 0 { // it waits again: only the earlier ones have steps
				more, err := c.Steps(ctx, strconv.FormatInt(int64(j.ID), 10))
				if err != nil {
					return nil, err
				}
				for k := range more.Steps {
					byJob[j.ID] = append(byJob[j.ID], report.StepRow{Step: &more.Steps[k], Now: list.Now})
				}
			}
			for k := range j.Earlier.Attempts {
				old := &client.Job{Job: j.As(&j.Earlier.Attempts[k])}
				add(old, ofAttempt(byJob[j.ID], old, list.Now))
			}
		}
		add(j, ofAttempt(byJob[j.ID], j, list.Now))
	}
	return rows, nil
}

// checkQOS refuses names of QOS that there are none of, as Slurm does.
func (q *query) checkQOS(ctx context.Context, w *cmd.World, c *client.Client) error {
	if len(q.qos) == 0 {
		return nil
	}
	policy, err := c.Policy(ctx)
	if err != nil {
		return err
	}
	names := []string{"normal"}
	for i := range policy.QOS {
		if name := string(policy.QOS[i].Name); name != names[0] {
			names = append(names, name)
		}
	}
	for i, name := range q.qos {
		at := slices.IndexFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
		if at < 0 {
			return &slurm.Complaint{Lines: []string{
				fmt.Sprintf("%s: error: You gave a bad qos '%s'. Valid QOS's are %s", w.Name, name, strings.Join(names, ",")),
				w.Name + ": fatal: problem processing qos list",
			}, Exit: slurm.ExitError}
		}
		q.qos[i] = names[at]
	}
	return nil
}

// ofAttempt picks the steps of one attempt of a job, which j is as it was then.
func ofAttempt(steps []report.StepRow, j *client.Job, now core.Time) []report.StepRow {
	var out []report.StepRow
	if j.Alloc == nil { // it waits
		return nil
	}
	if j.Spec.Batches() && !j.IsArray() {
		out = append(out, report.StepRow{Job: j, Now: now})
	}
	for _, s := range steps {
		if s.Step != nil && s.Step.Attempt == j.Attempt {
			s.Job = j
			out = append(out, s)
		}
	}
	return out
}

func base(j *client.Job) core.JobID {
	if j.Array != nil {
		return j.Array.Base
	}
	return j.ID
}

// task orders the tasks of an array; the record of those not started comes last.
func task(j *client.Job) int64 {
	switch {
	case j.Array == nil:
		return 0
	case j.Array.Tasks.Len() > 0:
		return 1 << 40
	}
	return int64(j.Array.Task)
}

// derived is the highest exit of the numbered steps.
func derived(steps []report.StepRow) core.Exit {
	var best core.Exit
	for i := range steps {
		if s := steps[i].Step; s != nil {
			best = report.Worse(best, s.Exit)
		}
	}
	return best
}
