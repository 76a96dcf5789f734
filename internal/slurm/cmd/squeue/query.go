package squeue

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/manual"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// query is what the user wants to see.
type query struct {
	q          client.JobsQuery
	states     report.StateFilter
	qos        []string
	resv       []string
	cols       []column.Column[report.QueueRow]
	sort       string
	noHeader   bool
	stamp      bool // print the time first
	array      bool
	noRows     bool // a filter that nothing can match
	steps      bool
	stepIDs    []string
	stepFormat string
	// of -O, in the place of stepFormat
	stepFormat2 string
	document    *cmd.DocumentForm // of --json and --yaml; nil: a table
	start       bool
	room        int
	every       time.Duration
	single      string // the only job asked for
	licenses    []string
	// a pending job is listed once for each of its partitions
	perPartition bool
	verbose      bool
	site         report.QueueSite
	shown        map[core.PartitionName]bool // nil: all
	all          bool                        // hidden partitions, too
	tasks        []string                    // of arrays that -j names one by one
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
		site:  report.QueueSite{Group: cmd.GroupName},
		all:   f.Has("all") || w.Getenv("SQUEUE_ALL") != "" && !f.Has("hide"),
		steps: f.Has("steps"), stepIDs: f.List("steps"), start: f.Has("start"), room: grammar.ArrayText,
		qos: cmd.SplitList(get("qos", "SQUEUE_QOS")), resv: f.List("reservation"), stamp: f.Has("long") && !f.Has("noheader"),
	}
	var ok bool
	if q.document, ok = w.Document(f); !ok {
		return nil, &slurm.Complaint{Exit: slurm.ExitError}
	}
	q.licenses, q.perPartition = cmd.SplitList(get("licenses", "SQUEUE_LICENSES")), f.Has("priority") ||
		w.Getenv("SQUEUE_PRIORITY") != ""
	if text, ok := w.Lookup("SLURM_BITSTR_LEN"); ok {
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			q.room = n
		}
	}
	if f.Has("iterate") {
		n, err := strconv.Atoi(f.Get("iterate"))
		if err != nil || n <= 0 {
			return nil, complaint(w, "--iterate=%s\n", f.Get("iterate"))
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
		return nil, complaint(w, "Unrecognized option: %s\n%s", f.Operands[0],
			strings.TrimSuffix(manual.Of(w.Name, parser).Usage(), "\n"))
	}
	for _, id := range q.q.IDs {
		if !validID(id) {
			return nil, complaint(w, "Invalid job id: %s", id)
		}
		if _, task, ok := strings.Cut(id, "_"); ok && task != "" {
			q.tasks = append(q.tasks, id)
		}
	}
	for _, id := range q.stepIDs {
		if job, step, ok := strings.Cut(id, "."); !ok || !validID(job) || step == "" {
			return nil, complaint(w, "Invalid job_step id: %s.??", job)
		}
	}
	q.noRows = nothing(f, "states", "name", "jobs")
	if len(q.q.IDs) == 1 {
		q.single = q.q.IDs[0]
	}
	if f.Has("nodelist") {
		names, err := cmd.Hosts(f.Get("nodelist"))
		if err != nil {
			return nil, complaint(w, "Invalid node name %s", f.Get("nodelist"))
		}
		if err := checkNodes(ctx, w, c, names); err != nil {
			return nil, err
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

// nothing reports whether one of some options was given a list without a word in it: as in Slurm nothing matches it.
func nothing(f cmd.Flags, keys ...string) bool {
	return slices.ContainsFunc(f.Values, func(v getopt.Value) bool {
		return slices.Contains(keys, v.Key) && (v.Value != "" || v.Key != "jobs") && len(cmd.SplitList(v.Value)) == 0
	})
}

// nameCluster finds the cluster's name, if a column shows it.
func (q *query) nameCluster(ctx context.Context, c *client.Client) error {
	if !slices.ContainsFunc(q.cols, func(c column.Column[report.QueueRow]) bool {
		return c.Field != nil && c.Field.Name == "Cluster"
	}) {
		return nil
	}
	info, err := c.Cluster(ctx)
	if err == nil {
		q.site.Cluster = info.Name
	}
	return err
}

// hide leaves out the jobs of partitions that are hidden from the user, unless all or some partitions were asked for.
func (q *query) hide(ctx context.Context, c *client.Client) error {
	if q.all || q.single != "" || len(q.q.Partitions) > 0 {
		return nil
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	known := len(info.Partitions)
	if err := cmd.HidePartitions(ctx, c, info); err != nil || len(info.Partitions) == known {
		return err
	}
	q.shown = map[core.PartitionName]bool{}
	for i := range info.Partitions {
		q.shown[info.Partitions[i].Name] = true
	}
	return nil
}

// isShown reports whether one of a job's partitions is not hidden.
func (q *query) isShown(r *report.QueueRow) bool {
	if q.shown == nil {
		return true
	}
	for name := range strings.SplitSeq(string(r.Partition), ",") {
		if q.shown[core.PartitionName(name)] {
			return true
		}
	}
	return false
}

// sortLetters are those that --sort knows.
const sortLetters = "cdefghijlmnptuvzBCDGHIJLMNOPQSTUV"

// badSort is the first letter of --sort that is no key, or "".
func badSort(order string) string {
	for _, letter := range order {
		if !strings.ContainsRune(sortLetters+", +-#", letter) {
			return string(letter)
		}
	}
	return ""
}

// checkNodes complains of the first name that no node has.
func checkNodes(ctx context.Context, w *cmd.World, c *client.Client, names []string) error {
	list, err := c.Nodes(ctx)
	if err != nil {
		return &slurm.Complaint{Lines: []string{"slurm_load_node error: " + slurm.ErrorText(err)}, Exit: slurm.ExitError}
	}
	known := make(map[string]bool, len(list.Nodes))
	for i := range list.Nodes {
		known[string(list.Nodes[i].Name)] = true
	}
	for _, name := range names {
		if !known[name] {
			return complaint(w, "Invalid node name %s", name)
		}
	}
	return nil
}

// usesLicense reports whether a job asks for one of some licenses.
func usesLicense(spec *core.Spec, names []string) bool {
	for _, part := range cmd.SplitList(strings.ReplaceAll(spec.More().Licenses.String(), "|", ",")) {
		name, _, _ := strings.Cut(part, ":")
		if slices.Contains(names, name) {
			return true
		}
	}
	return false
}

func complaint(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

func validID(id string) bool {
	base, task, isTask := strings.Cut(id, "_")
	base, offset, isPart := strings.Cut(base, "+")
	if isPart {
		if _, err := strconv.ParseUint(offset, 10, 16); err != nil || isTask {
			return false
		}
	}
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
			if u, err := account.ByUID(uint32(n)); err == nil {
				name = u.Name
			}
		} else if _, err := account.ByName(name); err != nil && !me {
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
	filter, bad := report.ParseStates(words)
	if bad != "" {
		return &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
			w.Name + ": error: Invalid job state specified: " + bad,
			w.Name + ": error: Valid job states include: " + report.ValidStates + "\n",
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
		format = report.QueueStepFormat
	case q.start:
		format = report.QueueStartFormat
	case f.Has("long"):
		format = report.QueueLongFormat
	default:
		format = report.QueueFormat
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
	if q.steps { // they have fields of their own; see steps.go
		q.stepFormat, q.stepFormat2 = format, long
		return nil
	}
	if long != "" && !f.Has("format") && (f.Has("Format") || w.Getenv("SQUEUE_FORMAT") == "") {
		cols, bad := column.ParseLongFormat(report.QueueFields, long)
		for _, name := range bad {
			w.Errorf("Invalid job format specification: %s", name)
		}
		q.cols = cols
		return nil
	}
	cols, bad := column.ParseFormat(report.QueueFields, format)
	for _, letter := range bad {
		w.Errorf("Invalid job format specification: %s", letter)
	}
	q.cols = cols
	return nil
}

// allFields is %all: every letter, the small ones first.
func allFields() string {
	var words []string
	for c := 'a'; c <= 'z'; c++ {
		words = append(words, "%"+string(c))
	}
	for c := 'A'; c <= 'Z'; c++ {
		words = append(words, "%"+string(c))
	}
	return strings.Join(words, "|")
}
