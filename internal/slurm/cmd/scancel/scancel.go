// Package scancel is the command that ends or signals jobs.
package scancel

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/report"
)

// What scancel leaves with: the low byte of Slurm's error number.
const (
	exitDenied = 2002 & 0xff
	exitNoStep = 2017 & 0xff // there is no such job, which Slurm says of a step
	exitAlone  = 7103 & 0xff // the cluster is in no federation
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "account", Short: 'A', Arg: getopt.RequiredArg},
	{Long: "batch", Short: 'b'},
	{Long: "ctld"},
	{Long: "cron"},
	{Long: "full", Short: 'f'},
	{Long: "hurry", Short: 'H'},
	{Long: "interactive", Short: 'i'},
	{Long: "me"},
	{Long: "clusters", Short: 'M', Arg: getopt.RequiredArg},
	{Key: "name", Long: "name", Short: 'n', Arg: getopt.RequiredArg},
	{Key: "name", Long: "jobname", Arg: getopt.RequiredArg},
	{Long: "partition", Short: 'p', Arg: getopt.RequiredArg},
	{Long: "qos", Short: 'q', Arg: getopt.RequiredArg},
	{Long: "quiet", Short: 'Q'},
	{Long: "reservation", Short: 'R', Arg: getopt.RequiredArg},
	{Long: "sibling", Arg: getopt.RequiredArg},
	{Long: "signal", Short: 's', Arg: getopt.RequiredArg},
	{Key: "state", Long: "state", Short: 't', Arg: getopt.RequiredArg},
	{Key: "state", Long: "states", Arg: getopt.RequiredArg},
	{Long: "user", Short: 'u', Arg: getopt.RequiredArg},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "nodelist", Short: 'w', Arg: getopt.RequiredArg},
	{Long: "wckey", Arg: getopt.RequiredArg},
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
	err := addEnvironment(w, &f)
	var calls []client.Cancel
	if err == nil {
		calls, err = requests(w, f)
	}
	if err != nil {
		return w.Complain(err)
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if _, ok := w.OnlyOurs(ctx, c, f.List("clusters")); !ok {
		return slurm.ExitError
	}
	if name, ok := nameUsers(ctx, c, calls); !ok {
		return w.Complain(fail(w, "Invalid user name: %s", name))
	}
	if f.Has("me") {
		who, err := c.Whoami(ctx)
		if err != nil {
			return w.Complain(err)
		}
		for i := range calls {
			calls[i].Users = []string{string(who.User)}
		}
		f.Values = append(f.Values, getopt.Value{Key: "user", Value: strconv.FormatUint(uint64(who.UID), 10)})
	}
	if f.Has("interactive") {
		var missing bool
		if calls, missing, err = confirm(ctx, w, c, calls); err != nil {
			return w.LoadFailed("slurm_load_jobs error", err)
		}
		if missing {
			code = slurm.ExitError
		}
	}
	if f.Has("sibling") {
		for i := range calls {
			w.Errorf("Kill job error on job id %s: Not a valid federated job", strings.Join(calls[i].IDs, ","))
		}
		return exitAlone
	}
	for i := range calls {
		code = max(code, send(ctx, w, c, &calls[i], f))
	}
	return code
}

// nameUsers replaces numbers of users by their names. It returns the first name that nobody has.
func nameUsers(ctx context.Context, c *client.Client, calls []client.Cancel) (unknown string, ok bool) {
	for i := range calls {
		for k, u := range calls[i].Users {
			if calls[i].Users[k], ok = cmd.FindUser(ctx, c, u); !ok {
				return u, false
			}
		}
	}
	return "", true
}

func fail(w *cmd.World, format string, args ...any) error {
	return &slurm.Complaint{Lines: []string{w.Name + ": error: " + fmt.Sprintf(format, args...)}, Exit: slurm.ExitError}
}

// requests turns the command line into calls: one for all jobs, and one for each step named. There are none where an
// option without a value chooses no job.
func requests(w *cmd.World, f cmd.Flags) ([]client.Cancel, error) {
	all := client.Cancel{
		Users: f.List("user"), Names: f.List("name"), Partitions: f.List("partition"), Projects: f.List("account"),
		QOS:          f.List("qos"),
		Reservations: f.List("reservation"), WCKeys: f.List("wckey"), Cron: f.Has("cron"), Batch: f.Has("batch"),
		Full: f.Has("full"),
	}
	for _, option := range []string{"name", "partition", "account", "qos", "nodelist", "reservation", "wckey"} {
		if f.Has(option) && len(f.List(option)) == 0 {
			return nil, nil // no job has an empty one; to the server it would be no condition
		}
	}
	if f.Has("user") && len(all.Users) != 1 { // one is all it takes
		return nil, fail(w, "Invalid user name: %s", f.Get("user"))
	}
	if f.Has("nodelist") {
		names, err := cmd.Hosts(f.Get("nodelist"))
		if err != nil {
			return nil, fail(w, "Invalid node name %s", f.Get("nodelist"))
		}
		all.Nodes = names
	}
	if f.Has("signal") {
		n, ok := signalNumber(f.Get("signal"))
		if !ok {
			return nil, &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{"Unknown job signal: " + f.Get("signal")}}
		}
		if all.Signal = n; n == int32(syscall.SIGKILL) { // it ends the job, whatever runs of it
			all.Batch, all.Full = false, false
		}
	}
	if word := strings.ToUpper(f.Get("state")); word == "CG" || word == "COMPLETING" {
		return nil, nil // they end anyway
	}
	if f.Has("state") {
		s, ok := core.ParseJobState(f.Get("state"))
		if !ok {
			return nil, &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
				"Invalid job state specified: " + f.Get("state"), validStates,
			}}
		}
		all.States = []string{s.String()}
	}
	filtered := f.Has("me") || len(all.Users)+len(all.Names)+len(all.Partitions)+len(all.Projects)+len(all.QOS)+
		len(all.Reservations)+len(all.WCKeys)+len(all.Nodes)+len(all.States) > 0
	if len(f.Operands) == 0 {
		if !filtered {
			return nil, fail(w, "No job identification provided")
		}
		return []client.Cancel{all}, nil
	}
	var calls []client.Cancel
	jobs := all
	for _, word := range f.Operands {
		for _, id := range cmd.SplitList(word) {
			job, step, hasStep := strings.Cut(id, ".")
			if !validID(job) {
				return nil, fail(w, "Invalid job id %s", id)
			}
			if !hasStep {
				jobs.IDs = append(jobs.IDs, job)
				continue
			}
			if _, err := strconv.ParseUint(step, 10, 31); err != nil {
				return nil, fail(w, "Invalid job id %s", id)
			}
			one := all
			one.IDs, one.Step = []string{job}, step
			calls = append(calls, one)
		}
	}
	if len(jobs.IDs) > 0 {
		calls = append([]client.Cancel{jobs}, calls...)
	}
	return calls, nil
}

func validID(id string) bool {
	base, task, isTask := strings.Cut(id, "_")
	base, offset, isPart := strings.Cut(base, "+")
	if isPart {
		if _, err := strconv.ParseUint(offset, 10, 16); err != nil || isTask {
			return false
		}
	}
	if n, err := strconv.ParseInt(base, 10, 64); err != nil || n <= 0 {
		return false
	}
	if !isTask || task == "*" {
		return true
	}
	if strings.HasPrefix(task, "[") != strings.HasSuffix(task, "]") {
		return false
	}
	_, err := grammar.ParseArray(strings.Trim(task, "[]"))
	return err == nil
}

// signalNames are those that scancel knows, without SIG.
var signalNames = strings.Fields("HUP INT QUIT ABRT KILL USR1 USR2 ALRM TERM CONT STOP TSTP TTIN TTOU URG XCPU")

// maxSignal bounds numbers; what a node cannot send is refused there.
const maxSignal = 1<<16 - 1

func signalNumber(text string) (int32, bool) {
	if n, err := strconv.Atoi(text); err == nil {
		return int32(max(-1, min(n, maxSignal))), n != 0
	}
	n, err := grammar.ParseSignal(text)
	name := strings.TrimPrefix(strings.ToUpper(text), "SIG")
	return int32(n), err == nil && slices.Contains(signalNames, name)
}

// filterText lists the filters, each followed by a blank.
func filterText(f cmd.Flags, b *client.Cancel) string {
	var out strings.Builder
	for _, o := range []struct{ name, value string }{
		{"account", f.Get("account")},
		{"job_name", f.Get("name")},
		{"nodelist", f.Get("nodelist")},
		{"partition", f.Get("partition")},
		{"qos", strings.ToLower(f.Get("qos"))},
		{"reservation", f.Get("reservation")},
		{"state", strings.Join(b.States, ",")},
		{"user_name", f.Get("user")},
		{"wckey", f.Get("wckey")},
	} {
		if o.value != "" {
			fmt.Fprintf(&out, "%s=%s ", o.name, o.value)
		}
	}
	return out.String()
}

// chosen reports whether more than ids was said. Slurm then looks for the jobs itself and complains of those it does
// not find; without, it passes the ids on and says nothing.
func chosen(f cmd.Flags) bool {
	for _, o := range parser.Options {
		switch key := cmp.Or(o.Key, o.Long); key {
		case "quiet", "verbose", "ctld", "clusters", "hurry", "full":
		default:
			if f.Has(key) {
				return true
			}
		}
	}
	return false
}

// inactive reports whether err says that there is no such job, or not any more.
func inactive(err error) bool {
	return core.CodeOf(err) == core.NotFound || core.ReasonOf(err) == slurm.ReasonJobFinished ||
		core.ReasonOf(err) == slurm.ReasonInvalidJobID
}

// text is an error as Slurm words it. Only who names no more than a job learns that it has ended.
func text(err error, tellEnd bool) string {
	switch {
	case tellEnd && core.ReasonOf(err) == slurm.ReasonJobFinished:
		return "Job/step already completing or completed"
	case inactive(err):
		return "Invalid job id specified"
	case core.ReasonOf(err) == slurm.ReasonNotRunning:
		return "Job is in transitional state"
	}
	return slurm.ErrorText(err)
}

func exitOf(err error) int {
	if core.CodeOf(err) == core.Denied {
		return exitDenied
	}
	return slurm.ExitError
}

// confirm asks about each job that matches, and keeps those that are said yes to.
func confirm(ctx context.Context, w *cmd.World, c *client.Client, calls []client.Cancel) (
	out []client.Cancel, missing bool, _ error,
) {
	in := bufio.NewReader(w.In)
	for _, b := range calls {
		list, err := c.Briefs(ctx, client.JobsQuery{
			IDs: b.IDs, Users: b.Users, Projects: b.Projects, Partitions: b.Partitions, States: b.States,
			Names: b.Names, Nodes: b.Nodes,
		})
		if err != nil {
			return nil, false, err
		}
		for _, id := range b.IDs {
			if !slices.ContainsFunc(list.Jobs, func(j client.Brief) bool { return sameJob(&j, id) }) {
				w.Errorf("Kill job error on job id %s: Invalid job id specified", id)
				missing = true
			}
		}
		for i := range list.Jobs {
			j := &list.Jobs[i]
			name := report.JobName(j.ID, j.Base, j.Task, j.Tasks, 0)
			what := "job_id=" + name
			if b.Step != "" {
				what = "step_id=" + name + "." + b.Step
			}
			fmt.Fprintf(w.Out, "Cancel %s name=%s partition=%s [y/n]? ", what, j.Name, j.Partition)
			answer, _ := in.ReadString('\n')
			if a := strings.TrimSpace(answer); a == "y" || a == "Y" {
				one := b
				one.IDs = []string{name}
				out = append(out, one)
			}
		}
	}
	return out, missing, nil
}

// sameJob reports whether an id names a job: its own, its array's, or its array's with the task.
func sameJob(j *client.Brief, id string) bool {
	base, _, _ := strings.Cut(id, "_")
	base, _, _ = strings.Cut(base, "+")
	return base == strconv.FormatInt(int64(j.ID), 10) || base == strconv.FormatInt(int64(j.Base), 10) || base != id
}
