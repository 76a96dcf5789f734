// Package srun is the command that runs tasks: in an allocation of its own, or as a step of the job it is called in.
package srun

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/allocation"
)

const usage = "[OPTIONS...] executable [args...]"

// run is one srun.
type run struct {
	w      *cmd.World
	c      *client.Client
	r      *slurm.Request
	argv   []string
	job    string // the job it runs in
	inside bool   // that was there before
	step   *client.StepMade

	programs []client.TaskProgram // of --multi-prog
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	r, argv, err := prepare(w, args)
	if err != nil {
		return w.Complain(err)
	}
	switch {
	case r.Ask.Version:
		return w.PrintVersion()
	case r.Ask.Help, r.Ask.Usage:
		fmt.Fprint(w.Out, slurm.Help(slurm.Srun, usage))
		return 0
	case r.Step.MPI == "list":
		fmt.Fprint(w.Out, "MPI plugin types are...\n\tnone\n\tpmi2\n")
		return 0
	case r.Ask.TestOnly:
		w.Errorf("--test-only is not supported")
		return slurm.ExitError
	case len(argv) == 0:
		fmt.Fprintln(w.Err, "srun: fatal: No command given to execute.")
		return slurm.ExitError
	case slices.Contains(argv, ":"):
		w.Errorf("heterogeneous jobs are not supported")
		return slurm.ExitError
	case !slices.Contains([]string{"", "none", "pmi2"}, r.Step.MPI):
		w.Errorf("Couldn't find the specified plugin name for mpi/%s looking at all files", r.Step.MPI)
		w.Errorf("--mpi=%s is not served here: pmi2 is, which MPICH and its kin speak; Open MPI's mpirun works inside an allocation", r.Step.MPI)
		return slurm.ExitError
	}
	warnings, err := r.Finish()
	if err != nil {
		return w.Complain(err)
	}
	for _, line := range warnings {
		fmt.Fprintln(w.Err, line)
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	s := &run{w: w, c: c, r: r, argv: argv, job: r.Step.Job}
	s.inside = s.job != ""
	if r.Step.MultiProg {
		text, err := os.ReadFile(r.Path(argv[0]))
		if err == nil {
			s.programs, err = slurm.MultiProg(argv[0], text, argv[1:])
		}
		if err != nil {
			w.Errorf("%v", err)
			return slurm.ExitError
		}
	}
	sig := catchSignals()
	defer sig.stop()
	if s.inside {
		if code := s.confirm(ctx); code != 0 {
			return code
		}
		code, _ := s.runStep(ctx, sig)
		return code
	}
	ask := allocation.Request{
		World: w, Client: c, Asked: r, Argv: argv, Refused: "Unable to allocate resources",
		Busy: core.Errorf(core.Conflict, "too late").Because(slurm.ReasonImmediate), Dot: "",
	}
	if code, ok := ask.Get(ctx, sig.c); !ok {
		return code
	}
	s.job = ask.Job
	code, exit := s.runStep(ctx, sig)
	ask.Release(ctx, exit) // whatever became of the step
	return code
}

// prepare reads variables and options. In a job, SLURM_JOB_ID names it and SLURM_JOB_NAME does not name the step.
func prepare(w *cmd.World, args []string) (*slurm.Request, []string, error) {
	r := slurm.NewRequest(slurm.Srun, w.Now(), w.Dir)
	r.ReadFile = os.ReadFile
	job, inJob := w.Lookup("SLURM_JOB_ID")
	if !inJob {
		job, inJob = w.Lookup("SLURM_JOBID")
	}
	lookup := func(name string) (string, bool) {
		if inJob && name == "SLURM_JOB_NAME" {
			return "", false
		}
		return w.Lookup(name)
	}
	if err := r.Environ(lookup); err != nil {
		return nil, nil, err
	}
	argv, err := r.Args(args)
	if err != nil {
		return nil, nil, err
	}
	if w.Dir == "" && !r.Ask.Version && !r.Ask.Help && !r.Ask.Usage {
		return nil, nil, r.Fail(slurm.ExitError, cmd.NoDir)
	}
	if r.Step.Job == "" {
		r.Step.Job = job
	}
	if len(argv) > 0 && r.Spec.Name == "" {
		r.Spec.Name = filepath.Base(argv[0])
	}
	return r, argv, nil
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
	have := 0
	if a := list.Jobs[0].Alloc; a != nil {
		have = len(a.Nodes)
	}
	if want := int(s.r.Spec.Shape.NodesMin); s.r.Given("nodes") && have > 0 && want > have {
		s.w.Errorf("Only allocated %d nodes asked for %d", have, want)
		return slurm.ExitError
	}
	return 0
}

// newStep is the step as the options ask for it.
func (s *run) newStep() *client.NewStep {
	r, sh := s.r, &s.r.Spec.Shape
	env := r.StepEnviron(s.w.Environ, cmd.ThisProcess())
	ask := &client.NewStep{
		Name: filepath.Base(s.argv[0]), Argv: s.argv, Env: env, WorkDir: r.WorkDir(), CPUsPerTask: sh.CPUsPerTask, Label: r.Step.Label,
		Pty: r.Step.Pty, MPI: r.Step.MPI, NodeList: r.Spec.More().NodeList, Distribution: r.Spec.More().Distribution, Umask: lookupVar(env, "SLURM_UMASK"), OwnsJob: !s.inside,
		Programs: s.programs,
	}
	if sh.Given&core.GivenTasks != 0 {
		ask.Tasks = sh.Tasks
	}
	if sh.Given&core.GivenNodes != 0 && (s.inside || sh.NodesMax <= sh.NodesMin) { // of a range it has what the job was given
		ask.Nodes = sh.NodesMin
	}
	if sh.Given&core.GivenTasksPerNode != 0 {
		ask.TasksPerNode = sh.TasksPerNode
	}
	if s.inside && r.Spec.TimeLimit > 0 && r.Spec.TimeLimit < core.Forever {
		ask.TimeLimit = r.Spec.TimeLimit
	}
	if r.Step.Pty && ask.Tasks > 1 {
		s.w.Errorf("--pty gives a terminal to task 0 only")
	}
	return ask
}

func lookupVar(env []string, name string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}
