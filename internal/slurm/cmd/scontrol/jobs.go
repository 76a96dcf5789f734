package scontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// jobVerbs are the commands about jobs and steps.
type jobVerbs struct{ *session }

func ofJobs(run func(jobVerbs, context.Context, []string) int) verb {
	return func(s *session, ctx context.Context, args []string) int { return run(jobVerbs{s}, ctx, args) }
}

// jobText is the words scontrol has for what may be wrong with a job, where they differ from other commands'.
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

// suspendText is what scontrol suspend and resume say of a job that they cannot be done to.
func suspendText(ctx context.Context, c *client.Client, id string, err error) string {
	list, missing := c.Job(ctx, id)
	switch {
	case missing != nil || len(list.Jobs) == 0:
		return "Unexpected message received"
	case core.CodeOf(err) == core.Denied || list.Jobs[0].State.Final():
		return jobText(err)
	case list.Jobs[0].State == core.Pending:
		return "Job is pending execution"
	case list.Jobs[0].State == core.Running:
		return "Job is not suspended"
	}
	return jobText(err)
}

// each applies an update to jobs named by words or comma lists, and reports those it could not be applied to.
func (s jobVerbs) each(ctx context.Context, words []string, after string, u *client.Update) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	ids, code := s.jobIDs(ctx, c, words)
	for _, id := range ids {
		if u.Priority != nil && isHeld(ctx, c, id) {
			fmt.Fprintf(s.w.Err, "Job is in held state, pending scheduler release for job %s\n", id)
			code = slurm.ExitError
			continue
		}
		err := c.UpdateJob(ctx, id, u)
		if u.Hold != nil && !u.Requeue && core.ReasonOf(err) == slurm.ReasonJobNotPending {
			continue // as in Slurm: of a job that runs there is nothing to hold, and that is no error
		}
		if core.ReasonOf(err) == "not_an_array" { // as Slurm: a task limit changes nothing of another job
			rest := *u
			if rest.Throttle = nil; rest == (client.Update{}) {
				continue
			}
			err = c.UpdateJob(ctx, id, &rest)
		}
		if err != nil {
			code = slurm.ExitError
			if client.Unreachable(err) {
				return s.w.LoadFailed("slurm_update error", err)
			}
			if !s.quiet {
				if u.Suspend != nil {
					fmt.Fprintf(s.w.Err, "%s for job %s\n", suspendText(ctx, c, id, err), id)
					continue
				}
				fmt.Fprintf(s.w.Err, "%s for job %s\n", jobText(err), id)
				if after != "" {
					fmt.Fprintf(s.w.Err, "%s error: %s\n", after, jobText(err))
				}
			}
		}
	}
	return code
}

// jobIDs reads ids, and jobname=NAME as the ids of all live jobs of that name, which Slurm takes for hold and release.
func (s jobVerbs) jobIDs(ctx context.Context, c *client.Client, words []string) (ids []string, code int) {
	if len(words) == 0 {
		fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", s.verb)
		return nil, slurm.ExitError
	}
	for _, word := range cmd.SplitList(strings.Join(words, ",")) {
		given := word
		key, value, named := strings.Cut(word, "=")
		switch key = strings.ToLower(key); {
		case named && (key == "jobname" || key == "name"):
			if value == "" { // no job has this name; to the server it is no condition
				continue
			}
			list, err := c.Briefs(ctx, client.JobsQuery{Names: []string{value}})
			if err != nil {
				return nil, s.w.LoadFailed("slurm_load_jobs error", err)
			}
			for i := range list.Jobs {
				ids = append(ids, strconv.FormatInt(int64(list.Jobs[i].ID), 10))
			}
			continue
		case named && (key == "jobid" || key == "job"):
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

func (s jobVerbs) hold(ctx context.Context, args []string) int {
	yes := true
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &yes})
}

func (s jobVerbs) userHold(ctx context.Context, args []string) int {
	yes := true
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &yes, UserHold: true})
}

func (s jobVerbs) release(ctx context.Context, args []string) int {
	no := false
	return s.each(ctx, args, "slurm_suspend", &client.Update{Hold: &no})
}

func (s jobVerbs) requeue(ctx context.Context, args []string) int {
	rest := skipWord(args, "incomplete")
	return s.each(ctx, rest, "", &client.Update{Requeue: true, Incomplete: len(rest) < len(args)})
}

func (s jobVerbs) requeueHold(ctx context.Context, args []string) int {
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
		return jobVerbs{s}.each(ctx, args, "slurm_suspend", &client.Update{Suspend: &stop})
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
func (s jobVerbs) waitJob(ctx context.Context, args []string) int {
	if len(args) == 0 {
		fmt.Fprintf(s.w.Err, "too few arguments for keyword:%s\n", s.verb)
		return slurm.ExitError
	}
	if s.tooMany(args, 1) {
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

// top puts jobs that wait before all others of their user in their partition, in the order given. It moves nice values:
// the jobs named get back what theirs take away, and those behind are set back as far as needed.
func (s jobVerbs) top(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	ids, code := s.jobIDs(ctx, c, args)
	if code != 0 {
		return code
	}
	if id, err := raise(ctx, c, ids); err != nil {
		fmt.Fprintf(s.w.Err, "%s for job %s\n", jobText(err), id)
		return slurm.ExitError
	}
	return 0
}

// raise does what top says; with an error it names the job that it is about.
func raise(ctx context.Context, c *client.Client, ids []string) (string, error) {
	var queue []client.Job
	named := map[core.JobID]bool{}
	for _, id := range ids {
		list, err := c.Job(ctx, id)
		if err != nil {
			return id, err
		}
		j := list.Jobs[0]
		switch {
		case j.State != core.Pending:
			return id, core.Errorf(core.Conflict, "it does not wait").Because(slurm.ReasonJobNotPending)
		case j.Priority == 0:
			return id, core.Errorf(core.Conflict, "it is held").Because(slurm.ReasonJobHeld)
		case len(queue) > 0 && (j.Spec.User != queue[0].Spec.User || !j.Spec.Partition.Equal(queue[0].Spec.Partition)):
			return id, core.Errorf(core.Denied, "its user or partition is another").Because("access_denied")
		case !named[j.ID]:
			queue = append(queue, j)
		}
		named[j.ID] = true
	}
	if len(queue) == 0 {
		return "", nil
	}
	first := &queue[0]
	all, err := c.Jobs(ctx, client.JobsQuery{
		Users: []string{string(first.Spec.User)}, Partitions: []string{first.Spec.Partition.String()},
	})
	if err != nil {
		return ids[0], err
	}
	others := slices.DeleteFunc(all.Jobs, func(j client.Job) bool {
		return j.State != core.Pending || j.Priority == 0 || named[j.ID] || j.Spec == nil
	})
	slices.SortStableFunc(others, func(a, b client.Job) int { return cmp.Compare(b.Priority, a.Priority) })
	last := int64(math.MaxInt64) // what the next has to stay below
	for i, j := range append(queue, others...) {
		nice, prio := int64(j.Spec.Nice), int64(j.Priority)
		if i < len(queue) && nice > 0 {
			nice, prio = 0, prio+nice
		}
		if prio >= last {
			nice, prio = nice+prio-last+1, last-1
		}
		last = prio
		if n := int32(nice); n != j.Spec.Nice {
			id := strconv.FormatInt(int64(j.ID), 10)
			if err := c.UpdateJob(ctx, id, &client.Update{Nice: &n}); err != nil {
				return id, err
			}
		}
	}
	return "", nil
}
