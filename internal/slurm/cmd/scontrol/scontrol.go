// Package scontrol is the command that shows and changes single records.
package scontrol

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
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
	doc   *cmd.DocumentForm // of --json and --yaml; nil: text
	quiet bool
	all   bool   // -a: hidden partitions too
	heads bool   // -v: listings begin with when their records changed, and how many there are
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
	{"hold", ofJobs(jobVerbs.hold)},
	{"uhold", ofJobs(jobVerbs.userHold)},
	{"holdu", ofJobs(jobVerbs.userHold)},
	{"release", ofJobs(jobVerbs.release)},
	{"requeue", ofJobs(jobVerbs.requeue)},
	{"requeuehold", ofJobs(jobVerbs.requeueHold)},
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
	{"shutdown", ofControl(controlVerbs.shutdown)},
	{"abort", ofControl(controlVerbs.shutdown)},
	{"takeover", ofControl(controlVerbs.takeover)},
	{"completing", ofControl(controlVerbs.completing)},
	{"listpids", ofHost(hostView.listPIDs)},
	{"pidinfo", ofHost(hostView.pidInfo)},
	{"errnumstr", ofControl(controlVerbs.errorText)},
	{"getent", ofControl(controlVerbs.getent)},
	{"setdebug", ofControl(controlVerbs.setDebug)},
	{"setdebugflags", ofControl(controlVerbs.setDebugFlags)},
	{"schedloglevel", ofControl(controlVerbs.setScheduleLog)},
	{"fsdampeningfactor", ofControl(controlVerbs.setDampening)},
	{"cluster", ofControl(controlVerbs.setCluster)},
	{"top", ofJobs(jobVerbs.top)},
	{"token", makeToken},
	{"notify", (*session).unsupported},
	{"power", (*session).power},
	{"wait_job", ofJobs(jobVerbs.waitJob)},
	{"exit", leave}, // at the prompt it ends before it comes here
	{"quit", leave},
}

// Options is the table of its options.
func Options() *getopt.Parser { return parser }

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	f, code, ok := w.Begin(parser, args)
	if !ok {
		return code
	}
	form, ok := w.Document(f)
	if !ok {
		return slurm.ExitError
	}
	s := &session{
		w: w, doc: form, quiet: f.Has("quiet"), heads: f.Has("verbose"),
		show: report.ShowOptions{OneLine: f.Has("oneliner"), Detail: f.Has("details"), Group: cmd.GroupName},
	}
	if s.quiet {
		w.Err = io.Discard
	}
	_, s.all = w.Lookup("SCONTROL_ALL")
	s.all = f.Has("all") || s.all && !f.Has("hide")
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
		return w.Prompt(func(words []string) int { return s.command(ctx, words) })
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
	if s.mode(name) {
		return 0
	}
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

// mode switches how the commands that follow at the prompt show records; false: the word is none of these.
func (s *session) mode(word string) bool {
	switch word {
	case "details":
		s.show.Detail = true
	case "oneliner":
		s.show.OneLine = true
	case "quiet":
		s.quiet, s.w.Err = true, io.Discard
	case "verbose":
		s.heads = true
	case "all":
		s.all = true
	case "hide":
		s.all = false
	default:
		return false
	}
	return true
}

// tooMany complains of arguments after a command that takes no more than most.
func (s *session) tooMany(args []string, most int) bool {
	if len(args) > most {
		fmt.Fprintf(s.w.Err, "too many arguments for keyword:%s\n", s.verb)
	}
	return len(args) > most
}

// leave is exit and quit, which end nothing where there is no prompt.
func leave(s *session, _ context.Context, args []string) int {
	if s.tooMany(args, 0) {
		return slurm.ExitError
	}
	return 0
}

func (s *session) unsupported(context.Context, []string) int {
	fmt.Fprintln(s.w.Err, "Requested operation not supported on this system")
	return slurm.ExitError
}

// pingPatience is how long ping waits for an answer.
const pingPatience = 2 * time.Second

// pingServers shows the server that leads as the primary, and the others as backups in the order of their names.
func (s *session) pingServers(ctx context.Context, c *client.Client, asked string) {
	list, err := c.Servers(ctx)
	if err != nil || len(list.Servers) < 2 {
		fmt.Fprintf(s.w.Out, "Slurmctld(primary) at %s is UP\n", asked)
		return
	}
	backups := 0
	slices.SortStableFunc(list.Servers, func(a, b client.Server) int {
		if leads := cmp.Compare(b2i(b.Role == "leads"), b2i(a.Role == "leads")); leads != 0 {
			return leads
		}
		return cmp.Compare(a.Name, b.Name)
	})
	for _, v := range list.Servers {
		role, up := "primary", "UP"
		if v.Role != "leads" {
			backups++
			role = fmt.Sprintf("backup%d", backups)
		}
		if v.Role == "silent" {
			up = "DOWN"
		}
		fmt.Fprintf(s.w.Out, "Slurmctld(%s) at %s is %s\n", role, v.Name, up)
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *session) ping(ctx context.Context, args []string) int {
	if s.tooMany(args, 0) {
		return slurm.ExitError
	}
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
	s.pingServers(ctx, c, info.Server)
	return 0
}
