// Package srun is the command that runs tasks: in an allocation of its own, or as a step of the job it is called in.
package srun

import (
	"context"
	"fmt"
	"os"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/allocation"
	"bireme.dev/bireme/internal/slurm/cmd/display"
	"bireme.dev/bireme/internal/slurm/mpi"
)

// run is one srun.
type run struct {
	w      *cmd.World
	c      *client.Client
	r      *slurm.Request // of the first part: what it says of streams holds for all
	parts  []*part
	job    string // the job it runs in
	inside bool   // that was there before
	array  *core.ArrayRef
	cast   cmd.Func // sbcast, for --bcast
	// killWait is how long a step may take to end after TERM
	killWait time.Duration
	input    *os.File // of its tasks, by --input; nil: not a file, or not open yet
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int { return start(ctx, w, args, nil) }

func start(ctx context.Context, w *cmd.World, args []string, cast cmd.Func) int {
	parts, err := prepare(w, args)
	if err != nil {
		return w.Complain(err)
	}
	r := parts[0].r
	switch {
	case r.Ask.Version:
		return w.PrintVersion()
	case r.Ask.Help:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Srun).Help())
		return 0
	case r.Ask.Usage:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Srun).Usage())
		return 0
	case r.Step.MPI == "list":
		fmt.Fprint(w.Out, mpi.List)
		return 0
	case r.Ask.Explain != "":
		fmt.Fprint(w.Out, r.Ask.Explain)
		return 0
	case len(parts[len(parts)-1].argv) == 0:
		fmt.Fprintln(w.Err, "srun: fatal: No command given to execute.")
		return slurm.ExitError
	case !mpi.Known(r.Step.MPI):
		w.Errorf("Couldn't find the specified plugin name for mpi/%s looking at all files", r.Step.MPI)
		w.Errorf("cannot find mpi plugin for mpi/%s", r.Step.MPI)
		w.Errorf("MPI: Cannot create context for mpi/%s", r.Step.MPI)
		w.Errorf("MPI: Unable to load any plugin")
		w.Errorf("Invalid MPI type '%s', --mpi=list for acceptable types", r.Step.MPI)
		return slurm.ExitError
	}
	if err := w.Verbose(r); err != nil {
		return w.Complain(err)
	}
	if err := display.Check(w, r.Step.X11); err != nil {
		w.Errorf("%v", err)
		return display.Exit
	}
	for _, p := range parts {
		if err := p.finish(w); err != nil {
			return w.Complain(err)
		}
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	s := &run{w: w, c: c, r: r, parts: parts, job: r.Step.Job, cast: cast}
	if r.Ask.TestOnly {
		return s.try(ctx)
	}
	s.inside = s.job != ""
	if !s.inside && r.Given("relative") {
		fmt.Fprintln(w.Err, "srun: fatal: --relative option invalid for job allocation request")
		return slurm.ExitError
	}
	sig := catchSignals()
	defer sig.stop()
	if s.inside {
		if code := s.confirm(ctx); code != 0 {
			return code
		}
		return s.within(ctx, func() int { code, _ := s.runStep(ctx, sig); return code })
	}
	ask := allocation.Request{
		World: w, Client: c, Asked: r, Argv: args, Refused: "Unable to allocate resources",
		Busy: core.Errorf(core.Conflict, "too late").Because(slurm.ReasonImmediate), Dot: "",
	}
	for _, p := range parts[1:] {
		ask.More = append(ask.More, p.r)
	}
	if code, ok := ask.Get(ctx, sig.c); !ok {
		return code
	}
	s.job = ask.Job
	s.site(ask.Found)
	s.granted(ask.Found)
	exit := core.Exit{Code: 1}
	code := s.within(ctx, func() (code int) { code, exit = s.runStep(ctx, sig); return code })
	ask.Release(ctx, exit) // whatever became of the step
	return code
}

// checkGroups refuses components that the het job does not have.
func (s *run) checkGroups(j *core.Job) int {
	het := j.Spec.More().Het
	if het == nil {
		return 0
	}
	for _, p := range s.parts {
		switch most := het.Count - 1; {
		case p.group <= most:
		case len(s.parts) == 1:
			s.w.Errorf("Requested het-group offset exceeds highest hetjob index (%d > %d)", p.group, most)
			return slurm.ExitError
		default:
			s.w.Errorf("Attempt to run a job step with het group value of %d, but the job allocation has maximum value of %d",
				p.group, most)
			return slurm.ExitError
		}
	}
	return 0
}

// granted takes note of the nodes of a job that srun made for itself, and tells of them with -v.
func (s *run) granted(list *client.JobList) {
	for i := range list.Jobs {
		a := list.Jobs[i].Alloc
		if a == nil {
			continue
		}
		cpus := make([]int32, len(a.Nodes))
		for k := range a.Nodes {
			cpus[k] = a.Nodes[k].CPUs
		}
		if i < len(s.parts) {
			s.parts[i].cpus = cpus
		}
		s.verbose("jobid %d: nodes(%d):`%s', cpu counts: %s", list.Jobs[i].ID, len(a.Nodes), client.AllocList(a),
			cmd.CountsText(cpus))
	}
}

// verbose says what -v asks for.
func (s *run) verbose(format string, args ...any) {
	if s.r.Ask.Verbose > 0 {
		s.w.Infof(format, args...)
	}
}

// try tells when and where the job would start.
func (s *run) try(ctx context.Context) int {
	sub := &client.Submit{Spec: s.r.Spec}
	sub.Spec.Kind = core.Interactive
	for _, p := range s.parts[1:] {
		sub.Components = append(sub.Components, p.r.Spec)
	}
	return s.w.Try(ctx, s.c, sub)
}

// confirm looks at the job that srun was told to run in.
func (s *run) confirm(ctx context.Context) int {
	list, err := s.c.Job(ctx, s.job)
	if err == nil && len(list.Jobs) == 1 && list.Jobs[0].State.Final() {
		err = core.Errorf(core.NotFound, "it has ended").Because(slurm.ReasonInvalidJobID)
	}
	if err != nil {
		if core.CodeOf(err) == core.NotFound {
			err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
		}
		s.w.Errorf("Unable to confirm allocation for job %s: %s", s.job, slurm.ErrorText(err))
		s.w.Infof("Check SLURM_JOB_ID environment variable. Expired or invalid job %s", s.job)
		return slurm.ExitError
	}
	s.site(list)
	s.array = list.Jobs[0].Array
	j := &list.Jobs[0].Job
	if code := s.checkGroups(j); code != 0 {
		return code
	}
	have := 0
	het := j.Spec.More().Het
	// Nodes of another component are for the server to count.
	if a := list.Jobs[0].Alloc; a != nil && (het == nil || s.parts[0].group == het.Offset) {
		have = len(a.Nodes)
	}
	if want, from := max(1, int(s.r.Spec.Shape.NodesMin)), s.r.Step.Relative; from > 0 && have > 0 && from+want > have {
		what := "--nodes"
		if !s.r.Typed("nodes") {
			what = "SLURM_JOB_NUM_NODES"
		}
		s.w.Errorf("--relative and %s option incompatible with count of allocated nodes (%d+%d>%d)", what, from, want, have)
		return slurm.ExitError
	}
	if want := int(s.r.Spec.Shape.NodesMin); s.r.Given("nodes") && have > 0 && want > have {
		s.w.Errorf("Only allocated %d nodes asked for %d", have, want)
		return slurm.ExitError
	}
	if len(s.parts) > 1 && het == nil && have > 0 {
		return s.divide(j.Alloc)
	}
	return 0
}
