// Package scontrol is the command that shows and changes single records.
package scontrol

import (
	"bufio"
	"context"
	"errors"
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
)

var parser = &getopt.Parser{Permute: true, Options: []getopt.Option{
	{Long: "all", Short: 'a'},
	{Long: "details", Short: 'd'},
	{Long: "federation"},
	{Long: "future", Short: 'F'},
	{Long: "help", Short: 'h'},
	{Long: "hide"},
	{Long: "json", Arg: getopt.OptionalArg},
	{Long: "local"},
	{Long: "cluster", Short: 'M', Arg: getopt.RequiredArg},
	{Long: "oneliner", Short: 'o'},
	{Long: "quiet", Short: 'Q'},
	{Long: "uid", Short: 'u', Arg: getopt.RequiredArg},
	{Long: "usage"},
	{Long: "verbose", Short: 'v'},
	{Long: "version", Short: 'V'},
	{Long: "yaml", Arg: getopt.OptionalArg},
}}

// session is one invocation.
type session struct {
	w     *cmd.World
	c     *client.Client
	show  report.ShowOptions
	json  bool
	quiet bool
	verb  string // the command that runs, as it was written
}

// verb is what a command does with its arguments.
type verb func(s *session, ctx context.Context, args []string) int

// verbs are the commands, in the order in which short forms find them.
var verbs = []struct {
	name string
	run  verb
}{
	{"show", (*session).showEntity},
	{"update", (*session).update},
	{"hold", (*session).hold},
	{"uhold", (*session).userHold},
	{"holdu", (*session).userHold},
	{"release", (*session).release},
	{"requeue", (*session).requeue},
	{"requeuehold", (*session).requeueHold},
	{"suspend", suspension(true)},
	{"resume", suspension(false)},
	{"ping", (*session).ping},
	{"write", config(siteConfig.write)},
	{"version", func(s *session, _ context.Context, _ []string) int { return s.w.PrintVersion() }},
	{"help", func(s *session, _ context.Context, _ []string) int { return s.w.PrintHelp(parser) }},
	{"create", (*session).create},
	{"delete", (*session).remove},
	{"reconfigure", config(siteConfig.reconfigure)},
	{"reboot", (*session).reboot},
	{"reboot_nodes", (*session).reboot},
	{"cancel_reboot", (*session).cancelReboot},
	{"shutdown", (*session).unsupported},
	{"takeover", (*session).unsupported},
	{"top", (*session).top},
	{"token", (*session).unsupported},
	{"notify", (*session).unsupported},
	{"power", (*session).power},
	{"wait_job", (*session).waitJob},
}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	s := &session{
		w: w, json: f.Has("json"), quiet: f.Has("quiet"),
		show: report.ShowOptions{OneLine: f.Has("oneliner"), Detail: f.Has("details"), Group: cmd.GroupName},
	}
	if f.Has("cluster") {
		c, err := s.client()
		if err != nil {
			w.Errorf("%v", err)
			return slurm.ExitError
		}
		if _, ok := w.OnlyOurs(ctx, c, f.List("cluster")); !ok {
			return slurm.ExitError
		}
	}
	if len(f.Operands) == 0 {
		return s.prompt(ctx)
	}
	return s.command(ctx, f.Operands)
}

// client opens the cluster at the first need: hostnames and the like do without.
func (s *session) client() (*client.Client, error) {
	if s.c == nil {
		c, err := s.w.Client()
		if err != nil {
			return nil, err
		}
		s.c = c
	}
	return s.c, nil
}

func (s *session) command(ctx context.Context, words []string) int {
	s.verb = words[0]
	name := strings.ToLower(words[0])
	for _, v := range verbs {
		if v.name == name {
			return v.run(s, ctx, words[1:])
		}
	}
	for _, v := range verbs {
		if len(name) >= 3 && strings.HasPrefix(v.name, name) {
			return v.run(s, ctx, words[1:])
		}
	}
	fmt.Fprintf(s.w.Err, "invalid keyword: %s\n", words[0])
	return slurm.ExitError
}

// prompt reads commands from standard input.
func (s *session) prompt(ctx context.Context) int {
	in := bufio.NewScanner(s.w.In)
	code := 0
	for {
		fmt.Fprint(s.w.Out, "scontrol: ")
		if !in.Scan() {
			fmt.Fprintln(s.w.Out)
			return code
		}
		words := strings.Fields(in.Text())
		switch {
		case len(words) == 0:
		case words[0] == "exit" || words[0] == "quit":
			return code
		default:
			code = s.command(ctx, words)
		}
	}
}

func (s *session) unsupported(context.Context, []string) int {
	fmt.Fprintln(s.w.Err, "Requested operation not supported on this system")
	return slurm.ExitError
}

// pingPatience is how long ping waits for an answer.
const pingPatience = 2 * time.Second

func (s *session) ping(ctx context.Context, _ []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	ctx, stop := context.WithTimeout(ctx, pingPatience) // whoever asks wants to know how it is now
	defer stop()
	info, err := c.Cluster(ctx)
	if err != nil {
		fmt.Fprintf(s.w.Out, "Slurmctld(primary) at %s is DOWN\n", s.w.Host)
		const stars = "*****************************************"
		fmt.Fprintf(s.w.Out, "%s\n** RESTORE SLURMCTLD DAEMON TO SERVICE **\n%s\n", stars, stars)
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, "Slurmctld(primary) at %s is UP\n", info.Server)
	return 0
}

// jobTexts are the words scontrol has for what may be wrong with a job, where they differ from other commands'.
func jobText(err error) string {
	switch {
	case core.ReasonOf(err) == slurm.ReasonJobFinished:
		return "Job has already finished"
	case core.ReasonOf(err) == slurm.ReasonDisabled:
		return slurm.ErrorText(err)
	case core.CodeOf(err) == core.Denied:
		return "Invalid user id"
	case core.CodeOf(err) == core.NotFound && core.ReasonOf(err) == "":
		return "Invalid job id specified"
	}
	return slurm.ErrorText(err)
}

// each applies an update to jobs named by words or comma lists, and reports those it could not be applied to.
func (s *session) each(ctx context.Context, words []string, after string, u *client.Update) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	ids, code := s.jobIDs(ctx, c, words)
	for _, id := range ids {
		if err := c.UpdateJob(ctx, id, u); err != nil {
			code = slurm.ExitError
			if client.Unreachable(err) {
				return s.w.LoadFailed("slurm_update error", err)
			}
			if !s.quiet {
				fmt.Fprintf(s.w.Err, "%s for job %s\n", jobText(err), id)
				if after != "" {
					fmt.Fprintf(s.w.Err, "%s error: %s\n", after, jobText(err))
				}
			}
		}
	}
	return code
}

// jobIDs reads ids, and jobname=NAME as the ids of all live jobs of that name.
func (s *session) jobIDs(ctx context.Context, c *client.Client, words []string) (ids []string, code int) {
	if len(words) == 0 {
		fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", s.verb)
		return nil, slurm.ExitError
	}
	for _, word := range cmd.SplitList(strings.Join(words, ",")) {
		given := word
		key, value, named := strings.Cut(word, "=")
		switch {
		case named && (strings.EqualFold(key, "jobname") || strings.EqualFold(key, "name")):
			list, err := c.Briefs(ctx, client.JobsQuery{Names: []string{value}})
			if err != nil {
				return nil, s.w.LoadFailed("slurm_load_jobs error", err)
			}
			for i := range list.Jobs {
				ids = append(ids, strconv.FormatInt(int64(list.Jobs[i].ID), 10))
			}
			continue
		case named:
			word = value
		}
		if word == "" || word[0] < '0' || word[0] > '9' {
			fmt.Fprintf(s.w.Err, "Invalid job id specified for job %s\n", given)
			if call := map[string]string{
				"hold": "slurm_suspend", "release": "slurm_suspend", "uhold": "slurm_suspend",
				"suspend": "slurm_suspend", "resume": "slurm_suspend",
			}[strings.ToLower(s.verb)]; call != "" {
				fmt.Fprintf(s.w.Err, "%s error: Invalid job id specified\n", call)
			}
			code = slurm.ExitError
			continue
		}
		ids = append(ids, word)
	}
	return ids, code
}

func (s *session) hold(ctx context.Context, args []string) int {
	yes := true
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &yes})
}

func (s *session) userHold(ctx context.Context, args []string) int {
	yes := true
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &yes, UserHold: true})
}

func (s *session) release(ctx context.Context, args []string) int {
	no := false
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &no})
}

func (s *session) requeue(ctx context.Context, args []string) int {
	rest := skipWord(args, "incomplete")
	return s.each(ctx, rest, "", &client.Update{Requeue: true, Incomplete: len(rest) < len(args)})
}

func (s *session) requeueHold(ctx context.Context, args []string) int {
	yes := true
	rest := skipWord(args, "incomplete")
	u := &client.Update{Requeue: true, Hold: &yes, Incomplete: len(rest) < len(args)}
	if len(rest) > 0 {
		key, value, _ := strings.Cut(strings.ToLower(rest[0]), "=")
		if key == "state" && len(value) >= 2 && strings.HasPrefix("specialexit", strings.ReplaceAll(value, "_", "")) {
			u.Special, rest = true, rest[1:]
		}
	}
	return s.each(ctx, rest, "", u)
}

// suspension is the verb that stops jobs, or lets them go on.
func suspension(stop bool) verb {
	return func(s *session, ctx context.Context, args []string) int {
		return s.each(ctx, args, "slurm_suspend", &client.Update{Suspend: &stop})
	}
}

func skipWord(args []string, word string) []string {
	if len(args) > 0 && strings.EqualFold(args[0], word) {
		return args[1:]
	}
	return args
}

var errChanged = errors.New("something changed")

// waitJob returns when a job has its nodes: at once for a job that runs, as an error for one that has ended.
func (s *session) waitJob(ctx context.Context, args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(s.w.Err, "one argument is needed for keyword:wait_job")
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	for {
		list, err := c.Job(ctx, args[0])
		if core.CodeOf(err) == core.NotFound {
			s.w.Infof("Problem running job %s", args[0])
			return slurm.ExitError
		}
		if err != nil {
			return s.w.LoadFailed("slurm_load_jobs error", err)
		}
		waits := func(j client.Job) bool { return j.State == core.Pending }
		if slices.ContainsFunc(list.Jobs, func(j client.Job) bool { return !waits(j) && !j.State.Final() }) {
			return 0
		}
		if !slices.ContainsFunc(list.Jobs, waits) {
			fmt.Fprintf(s.w.Err, "Job %s has already finished\n", args[0])
			return slurm.ExitError
		}
		err = c.Watch(ctx, list.Seq, func(e *core.Event) error {
			if slices.ContainsFunc(list.Jobs, func(j client.Job) bool { return j.ID == e.Job || j.Array != nil }) {
				return errChanged
			}
			return nil
		})
		switch code := core.CodeOf(err); {
		case ctx.Err() != nil:
			return slurm.ExitError
		case err != nil && !errors.Is(err, errChanged) && code != core.Gone && code != core.Unavailable:
			return s.w.LoadFailed("slurm_load_jobs error", err)
		}
	}
}
