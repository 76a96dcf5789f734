package scontrol

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// showSteps prints the steps that run: all, those of a job, or one.
func (s jobVerbs) showSteps(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	var list *client.JobList
	name, one := "", false
	if len(args) > 0 {
		name, _, one = strings.Cut(args[0], ".")
		list, err = c.Job(ctx, name)
	} else {
		list, err = c.Jobs(ctx, client.JobsQuery{})
	}
	if err == nil && name != "" && !slices.ContainsFunc(list.Jobs, func(j client.Job) bool { return j.Live() }) {
		err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
	}
	if err != nil {
		if core.CodeOf(err) == core.NotFound {
			err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
		}
		return s.w.LoadFailed("slurm_get_job_steps error", err)
	}
	rows, err := cmd.Steps(ctx, c, list)
	if err != nil {
		return s.w.LoadFailed("slurm_get_job_steps error", err)
	}
	shown := false
	for i := range rows {
		r := &rows[i]
		if r.State().Final() || one && r.ID() != args[0] {
			continue
		}
		fmt.Fprint(s.w.Out, report.ShowStep(r, s.show))
		shown = true
	}
	switch {
	case !shown && one:
		fmt.Fprintf(s.w.Out, "Job step %s not found\n", args[0])
		return slurm.ExitError
	case !shown:
		fmt.Fprintln(s.w.Out, "No job steps in the system")
	}
	return 0
}

// updateStep changes the time limit of a step, or of all steps of a job.
func (s jobVerbs) updateStep(ctx context.Context, given pair, pairs []pair) int {
	job, step, one := strings.Cut(given.value, ".")
	if job == "" || job[0] < '0' || job[0] > '9' {
		fmt.Fprintf(s.w.Err, "Invalid StepID parameter: %s\nRequest aborted\n", given.text)
		return slurm.ExitError
	}
	u, changes := client.UpdateStep{}, false
	for _, p := range pairs {
		if p.key != "timelimit" || p.sign != 0 {
			return s.unknownKey(p)
		}
		limit, ok := timeLimit(p.value)
		if !ok {
			s.w.Errorf("Invalid TimeLimit value")
			return slurm.ExitError
		}
		u.TimeLimit, changes = limit, true
	}
	if !changes {
		fmt.Fprintln(s.w.Err, "No changes specified")
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	if !one {
		step = "all"
	}
	if err := c.UpdateStep(ctx, job, step, &u); err != nil {
		if client.Unreachable(err) {
			return s.w.LoadFailed("slurm_update error", err)
		}
		fmt.Fprintf(s.w.Err, "slurm_update error: %s\n", jobText(err))
		return slurm.ExitError
	}
	return 0
}

func (s *session) unknownKey(p pair) int {
	fmt.Fprintf(s.w.Err, "Update of this parameter is not supported: %s\nRequest aborted\n", p.text)
	return slurm.ExitError
}
