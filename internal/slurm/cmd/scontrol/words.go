package scontrol

import (
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
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
)

// controlVerbs are the commands about the server, and what else scontrol can say.
type controlVerbs struct{ *session }

func ofControl(run func(controlVerbs, context.Context, []string) int) verb {
	return func(s *session, ctx context.Context, args []string) int { return run(controlVerbs{s}, ctx, args) }
}

// completing lists the jobs whose nodes are not clean of them yet.
func (s controlVerbs) completing(ctx context.Context, args []string) int {
	if s.tooMany(args, 0) {
		return slurm.ExitError
	}
	c, err := s.client()
	var list *client.JobList
	if err == nil {
		list, err = c.Jobs(ctx, client.JobsQuery{})
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_jobs error", err)
	}
	now := cmp.Or(list.Now, core.At(s.w.Now()))
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if !j.Flags.Any(core.Completing) || j.Alloc == nil {
			continue
		}
		fmt.Fprintf(s.w.Out, "JobId=%d EndTime=%s CompletingTime=%s Nodes(COMPLETING)=%s \n", j.ID,
			report.TimeText(j.End, "Unknown"), grammar.FormatClock(int64(max(0, now.Sub(j.End).Seconds()))), nodesOf(j))
	}
	return 0
}

func nodesOf(j *client.Job) string {
	names := make([]string, len(j.Alloc.Nodes))
	for i := range j.Alloc.Nodes {
		names[i] = string(j.Alloc.Nodes[i].Node)
	}
	return hostlist.FoldSorted(names)
}

// errorText says what a number of Slurm's or the system's means.
func (s controlVerbs) errorText(_ context.Context, args []string) int {
	if len(args) != 1 {
		fmt.Fprintf(s.w.Err, "one arguments required for keyword:%s\n", s.verb)
		return slurm.ExitError
	}
	n, err := strconv.ParseInt(args[0], 10, 32)
	if err != nil {
		fmt.Fprintf(s.w.Err, "numeric arguments required for keyword:%s\n", s.verb)
		return slurm.ExitError
	}
	text := errno.Text(int(n))
	switch {
	case n == 0:
		text = "No error"
	case text == "" && n > 0 && n < 134: // the system's
		text = cmd.ErrnoText(syscall.Errno(n))
	case text == "":
		text = "Unknown error " + args[0]
	}
	fmt.Fprintln(s.w.Out, text)
	return 0
}

// getent lists the users that nss_slurm serves on a node: none, users are those of the node itself.
func (s controlVerbs) getent(context.Context, []string) int { return 0 }

// debugLevels are Slurm's names for how much daemons log, by number.
var debugLevels = strings.Fields("quiet fatal error info verbose debug debug2 debug3 debug4 debug5")

// takes checks that a command has one argument.
func (s controlVerbs) takes(args []string) bool {
	if len(args) == 0 {
		fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", s.verb)
		return false
	}
	return !s.tooMany(args, 1)
}

// setDebug, setDebugFlags, setScheduleLog and setDampening check their argument as Slurm does; what they would change
// is set in the settings, so nobody may change it here.
func (s controlVerbs) setDebug(ctx context.Context, args []string) int {
	if !s.takes(args) {
		return slurm.ExitError
	}
	n, err := strconv.Atoi(args[0])
	if !slices.Contains(debugLevels, strings.ToLower(args[0])) && (err != nil || n < 0 || n >= len(debugLevels)) {
		fmt.Fprintf(s.w.Err, "invalid debug level: %s\n", args[0])
		return slurm.ExitError
	}
	return s.fixed(ctx, "slurm_set_debug_level", "Permission denied")
}

func (s controlVerbs) setDebugFlags(ctx context.Context, args []string) int {
	if !s.takes(args) {
		return slurm.ExitError
	}
	if flag := args[0]; len(flag) < 2 || flag[0] != '+' && flag[0] != '-' {
		fmt.Fprintf(s.w.Err, "invalid debug flag: %s\nUsage: setdebugflags [+|-]NAME\n", flag)
		return slurm.ExitError
	} else if !slices.Contains(debugFlags, strings.ToLower(flag[1:])) {
		s.w.Errorf("Invalid DebugFlag: %s", flag[1:])
		fmt.Fprintf(s.w.Err, "invalid debug flag: %s\n", flag)
		return slurm.ExitError
	}
	return s.fixed(ctx, "slurm_set_debug_flags", "Permission denied")
}

// debugFlags are Slurm's.
var debugFlags = strings.Fields("accrue agent auditrpcs backfill backfillmap burstbuffer cgroup cpufrequency " +
	"cpu_bind data dependency elasticsearch energy extsensors federation frontend " +
	"gres hetjob gang glob_silence interconnect jobaccountgather jobcomp " +
	"jobcontainer license mpi network networkraw nodefeatures no_conf_hash power " +
	"powersave priority profile protocol qosdebug reservation route script " +
	"selecttype steps switch timecray trace triggers workqueue")

func (s controlVerbs) setScheduleLog(ctx context.Context, args []string) int {
	if !s.takes(args) {
		return slurm.ExitError
	}
	if !slices.Contains([]string{"0", "1", "disable", "enable"}, strings.ToLower(args[0])) {
		fmt.Fprintf(s.w.Err, "invalid schedlog level: %s\n", args[0])
		return slurm.ExitError
	}
	return s.fixed(ctx, "slurm_set_schedlog_level", "Permission denied")
}

func (s controlVerbs) setDampening(ctx context.Context, args []string) int {
	if !s.takes(args) {
		return slurm.ExitError
	}
	if n, err := strconv.ParseUint(args[0], 10, 16); err != nil || n == 0 {
		fmt.Fprintf(s.w.Err, "invalid dampening factor: %s\n", args[0])
		return 0 // as Slurm's
	}
	return s.fixed(ctx, "slurm_set_fs_dampeningfactor", "Permission denied")
}

// fixed refuses what nobody may do by a command; others than administrators are told that they may not.
func (s controlVerbs) fixed(ctx context.Context, what, denied string) int {
	c, err := s.client()
	var who *client.Whoami
	if err == nil {
		who, err = c.Whoami(ctx)
	}
	if err != nil {
		return s.w.LoadFailed(what+" error", err)
	}
	text := "Requested operation is presently disabled"
	if !who.Admin {
		text = denied
	}
	fmt.Fprintf(s.w.Err, "%s error: %s\n", what, text)
	if who.Admin {
		s.w.Hint("it is a setting of the server's config file, or done where the server was started")
	}
	return slurm.ExitError
}

// shutdown ends no daemon: what started the server stops it.
func (s controlVerbs) shutdown(ctx context.Context, args []string) int {
	if strings.EqualFold(s.verb, "shutdown") && len(args) > 0 && !strings.EqualFold(args[0], "slurmctld") &&
		!strings.EqualFold(args[0], "controller") {
		fmt.Fprintf(s.w.Err, "invalid shutdown argument:%s\n", args[0])
		return slurm.ExitError
	}
	return s.fixed(ctx, "slurm_shutdown", "Invalid user id")
}

// takeover has the server that leads step down: another one leads then.
func (s controlVerbs) takeover(ctx context.Context, args []string) int {
	switch {
	case len(args) > 1:
		fmt.Fprintln(s.w.Err, "takeover: too many arguments")
		return slurm.ExitError
	case len(args) == 1:
		n, _ := strconv.Atoi(args[0])
		fmt.Fprintf(s.w.Err, "takeover: invalid backup controller index (%d)\n", n)
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	err = c.StepDown(ctx)
	switch core.CodeOf(err) {
	case core.Conflict: // there is no other server
		fmt.Fprintf(s.w.Err, "slurm_takeover error: %s\n", slurm.NotContacted)
	case core.Denied:
		fmt.Fprintln(s.w.Err, "slurm_takeover error: Invalid user id")
	default:
		if err == nil {
			return 0
		}
		fmt.Fprintf(s.w.Err, "slurm_takeover error: %v\n", err)
	}
	return slurm.ExitError
}

// setCluster is the cluster that commands at the prompt are for: there is one.
func (s controlVerbs) setCluster(ctx context.Context, args []string) int {
	if len(args) == 0 {
		return 0
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	if _, ok := s.w.OnlyOurs(ctx, c, args[:1]); !ok {
		return slurm.ExitError
	}
	return 0
}
