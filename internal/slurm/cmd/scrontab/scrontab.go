// Package scrontab is the command for jobs that come again by the clock. Each entry of a user's table is one job, which
// goes back to the queue when it has ended; the table itself is kept with these jobs, a part with each.
package scrontab

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "edit", Short: 'e'},
	{Long: "list", Short: 'l'},
	{Long: "remove", Short: 'r'},
	{Long: "user", Short: 'u', Arg: getopt.RequiredArg},
	{Long: "quiet", Short: 'Q'},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "help", Short: 'h'},
	{Long: "usage"},
}}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// table is one user's.
type table struct {
	w    *cmd.World
	c    *client.Client
	user string // "": the caller's own
	home string
	jobs []client.Job // its entries, in order
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	switch {
	case !ok:
		return code
	case len(f.Operands) > 1:
		w.Errorf("only one file can be given")
		return slurm.ExitError
	case len(f.Operands) == 0 && !f.Has("edit") && !f.Has("list") && !f.Has("remove"):
		w.Errorf("expected -e, -l, -r or a file")
		return slurm.ExitError
	}
	t := &table{w: w, user: f.Get("user"), home: w.Getenv("HOME")}
	if t.user != "" {
		u, err := account.ByName(t.user)
		if err != nil {
			w.Errorf("Invalid user: %s", t.user)
			return slurm.ExitError
		}
		t.home = u.Home
	}
	var err error
	if t.c, err = w.Client(); err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	if err := t.load(ctx); core.CodeOf(err) == core.Denied { // in the words of Slurm 22.05
		call := "slurm_request_crontab"
		if f.Has("remove") {
			call = "slurm_remove_crontab"
		}
		fmt.Fprintf(w.Err, "scrontab: fatal: %s failed: %s\n", call, slurm.ErrorText(err))
		return slurm.ExitError
	} else if err != nil {
		return w.Complain(err)
	}
	switch {
	case f.Has("list"):
		text := t.text()
		if t.user != "" {
			text = plain.Message(text) // another's words
		}
		fmt.Fprint(w.Out, text)
	case f.Has("remove"):
		err = t.drop(ctx, t.jobs)
	case f.Has("edit"):
		err = t.edit(ctx)
	default:
		err = t.read(ctx, f.Operands[0])
	}
	if err != nil {
		return w.Complain(err)
	}
	return 0
}

// load finds the jobs of the table.
func (t *table) load(ctx context.Context) error {
	who, err := t.c.Whoami(ctx)
	if err != nil {
		return err
	}
	user := t.user
	if user == "" {
		user = string(who.User)
	}
	if user != string(who.User) && !who.Admin { // the server shows nobody another's table, and lets nobody change it
		return core.Errorf(core.Denied, "the table of %s is theirs and the administrators'", user).Because("access_denied")
	}
	list, err := t.c.Jobs(ctx, client.JobsQuery{Users: []string{user}})
	if err != nil {
		return err
	}
	for i := range list.Jobs {
		if j := &list.Jobs[i]; j.Spec.Schedule() != "" && j.Stop == nil {
			t.jobs = append(t.jobs, *j)
		}
	}
	slices.SortFunc(t.jobs, func(a, b client.Job) int { return place(&a) - place(&b) })
	return nil
}

func place(j *client.Job) int {
	n, _ := strconv.Atoi(j.Spec.More().SlurmOption(optPlace))
	return n
}

// text is the table as it was written.
func (t *table) text() (all string) {
	for i := range t.jobs {
		all += t.jobs[i].Spec.More().SlurmOption(optLines)
	}
	return all
}

// read takes a new table from a file, or from standard input.
func (t *table) read(ctx context.Context, path string) error {
	var data []byte
	var err error
	if path == "-" {
		data, err = io.ReadAll(t.w.In)
	} else {
		if !isAbs(path) {
			path = t.w.Dir + "/" + path
		}
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return err
	}
	return t.install(ctx, string(data))
}

func isAbs(path string) bool { return path != "" && path[0] == '/' }

// install replaces the table: all of the new one is submitted, then the old one goes. If anything is wrong with the new
// one the old one stays.
func (t *table) install(ctx context.Context, text string) error {
	entries, err := parse(text)
	if err != nil {
		return err
	}
	subs := make([]*client.Submit, len(entries))
	for i := range entries {
		if subs[i], err = entries[i].submission(t.w, t.user, t.home, i); err != nil {
			return err
		}
	}
	var made []client.Job
	for i, s := range subs {
		out, err := t.c.Submit(ctx, s)
		if err != nil {
			_ = t.drop(ctx, made) // what is wrong is told below
			return fault(entries[i].line, "%s", slurm.ErrorText(err))
		}
		made = append(made, client.Job{Job: core.Job{ID: out.ID}})
	}
	return t.drop(ctx, t.jobs)
}

// drop ends jobs for good.
func (t *table) drop(ctx context.Context, jobs []client.Job) error {
	if len(jobs) == 0 {
		return nil
	}
	ids := make([]string, len(jobs))
	for i := range jobs {
		ids[i] = strconv.FormatInt(int64(jobs[i].ID), 10)
	}
	done, err := t.c.Cancel(ctx, &client.Cancel{IDs: ids, Cron: true})
	if err != nil {
		return err
	}
	for _, r := range done.Results {
		if r.Error != nil && r.Error.Reason != "job_finished" {
			return r.Error
		}
	}
	return nil
}

// edit lets the user's editor change the table.
func (t *table) edit(ctx context.Context) error {
	f, err := os.CreateTemp("", "scrontab-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	before := t.text()
	_, err = f.WriteString(before)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	editor := t.w.Getenv("VISUAL")
	if editor == "" {
		editor = t.w.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	c := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", f.Name())
	c.Stdin, c.Stdout, c.Stderr, c.Env = t.w.In, t.w.Out, t.w.Err, t.w.Environ
	if err := c.Run(); err != nil {
		return fmt.Errorf("editor %s: %w", editor, err)
	}
	after, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	if string(after) == before {
		t.w.Infof("nothing has changed")
		return nil
	}
	return t.install(ctx, string(after))
}
