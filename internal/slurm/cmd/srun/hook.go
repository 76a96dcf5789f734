package srun

import (
	"context"
	"fmt"
	"os/exec"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
)

// site takes the site's programs where none were given.
func (s *run) site(list *client.JobList) {
	s.killWait = list.KillWait.Duration()
	if !s.r.Step.KillGiven {
		s.r.Step.KillOnBadExit = s.r.Step.KillOnBadExit || list.KillOnBadExit
	}
	if !s.r.Given("wait") && s.r.Step.Wait == 0 {
		s.r.Step.Wait = list.WaitTime.Duration()
	}
	for _, h := range []struct {
		mine *string
		its  string
	}{{&s.r.Step.Prolog, list.SrunProlog}, {&s.r.Step.Epilog, list.SrunEpilog}} {
		if *h.mine == "" {
			*h.mine = h.its
		}
		if *h.mine == "none" { // as Slurm: not even the site's
			*h.mine = ""
		}
	}
}

// hook runs the program of --prolog or --epilog, here and as the caller, with the job's variables.
func (s *run) hook(ctx context.Context, what, program string) error {
	if program == "" {
		return nil
	}
	env := append([]string{}, s.w.Environ...)
	if list, err := s.c.Job(ctx, s.job); err == nil && len(list.Jobs) > 0 {
		env = slurm.MergeEnv(env, slurm.AllocEnv(&list.Jobs[0].Job, slurm.ClusterInfo{}))
	}
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Env = s.w.Dir, slurm.MergeEnv(env, []string{"SLURM_SCRIPT_CONTEXT=" + what + "_srun"})
	c.Stdout, c.Stderr = s.w.Out, s.w.Err
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", what, program, err)
	}
	return nil
}

// within runs the step between prolog and epilog. A prolog that fails keeps it from starting; an epilog that fails is
// told.
func (s *run) within(ctx context.Context, step func() int) int {
	if err := s.hook(ctx, "prolog", s.r.Step.Prolog); err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	drop, err := s.broadcast(ctx)
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	code := step()
	drop()
	if err := s.hook(context.WithoutCancel(ctx), "epilog", s.r.Step.Epilog); err != nil {
		s.w.Errorf("%v", err)
	}
	return code
}
