// Package salloc is the command that gets an allocation, runs a command or a shell beside it, and gives it back.
package salloc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/cmd/allocation"
	"bireme.dev/bireme/internal/slurm/cmd/display"
)

// run is one salloc.
type run struct {
	w    *cmd.World
	c    *client.Client
	r    *slurm.Request
	more []*slurm.Request // of further components
	ask  allocation.Request
	argv []string
}

// Run is the command.
func Run(ctx context.Context, w *cmd.World, args []string) int {
	all, argv, err := prepare(w, args)
	if err != nil {
		return w.Complain(err)
	}
	r := all[0]
	switch {
	case r.Ask.Version:
		return w.PrintVersion()
	case r.Ask.Help:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Salloc).Help())
		return 0
	case r.Ask.Usage:
		fmt.Fprint(w.Out, slurm.Manual(slurm.Salloc).Usage())
		return 0
	case r.Ask.Explain != "":
		fmt.Fprint(w.Out, r.Ask.Explain)
		return 0
	case w.Dir == "":
		w.Errorf(cmd.NoDir)
		return slurm.ExitError
	}
	if err := w.Verbose(r); err != nil {
		return w.Complain(err)
	}
	if err := display.Check(w, r.Step.X11); err != nil {
		w.Errorf("%v", err)
		return display.Exit
	}
	for _, part := range all {
		if part.Spec.Name == "" {
			part.Spec.Name = "interactive"
		}
		warnings, err := part.Finish()
		if err != nil {
			return w.Complain(err)
		}
		for _, line := range warnings {
			fmt.Fprintln(w.Err, line)
		}
		if part.Spec.Extra == nil {
			part.Spec.Extra = &core.Extra{}
		}
		part.Spec.Extra.Open = true
	}
	c, err := w.Client()
	if err != nil {
		w.Errorf("%v", err)
		return slurm.ExitError
	}
	s := &run{w: w, c: c, r: r, more: all[1:], argv: argv}
	return s.run(ctx)
}

// prepare reads variables and options; what follows a ":" is of another component, until the command begins.
func prepare(w *cmd.World, args []string) (all []*slurm.Request, argv []string, err error) {
	for {
		r := slurm.NewRequest(slurm.Salloc, w.Now(), w.Dir)
		r.ReadFile = os.ReadFile
		if len(all) > 0 {
			if err := r.Inherit(all[0]); err != nil {
				return nil, nil, err
			}
		}
		if err := r.Environ(w.Lookup); err != nil {
			return nil, nil, err
		}
		if argv, err = r.Args(args); err != nil {
			return nil, nil, err
		}
		all = append(all, r)
		if len(argv) == 0 || argv[0] != ":" {
			return all, argv, nil
		}
		args = argv[1:]
	}
}

func (s *run) run(ctx context.Context) int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2)
	defer signal.Stop(signals)
	s.ask = allocation.Request{
		World: s.w, Client: s.c, Asked: s.r, More: s.more, Argv: s.argv, Refused: "Job submit/allocate failed", Dot: ".",
		Busy:    core.Errorf(core.Conflict, "too late").Because(slurm.ReasonNodesBusy),
		Pending: func(job string) { s.w.Infof("Pending job allocation %s", job) },
	}
	if code, ok := s.ask.Get(ctx, signals); !ok {
		return code
	}
	s.say("Granted job allocation %s", s.ask.Job)
	if s.r.Step.Bell {
		fmt.Fprint(s.w.Err, "\a")
	}
	if s.r.Step.NoShell {
		return 0
	}
	list, err := s.c.Job(ctx, s.ask.Job)
	if err == nil && len(list.Jobs) != 1+len(s.more) {
		err = core.Errorf(core.Internal, "%d of its %d components are there", len(list.Jobs), 1+len(s.more))
	}
	if err != nil {
		s.w.Errorf("Unable to read job %s: %s", s.ask.Job, slurm.ErrorText(err))
		s.ask.Release(ctx, core.Exit{Code: 1})
		return slurm.ExitError
	}
	jobs := make([]*core.Job, len(list.Jobs))
	for i := range list.Jobs {
		jobs[i] = &list.Jobs[i].Job
	}
	slices.SortFunc(jobs, func(a, b *core.Job) int { return cmp.Compare(a.ID, b.ID) })
	exit, revoked := s.work(ctx, jobs, list.Seq, signals)
	if !revoked {
		s.say("Relinquishing job allocation %s", s.ask.Job)
		s.ask.Release(ctx, exit)
	}
	if exit.Signal != 0 {
		return 128 + int(exit.Signal)
	}
	return int(exit.Code)
}

func (s *run) say(format string, args ...any) {
	if !s.r.Ask.Quiet {
		s.w.Infof(format, args...)
	}
}

// command is what runs beside the allocation: what was asked for, or the user's shell.
func (s *run) command() []string {
	if len(s.argv) > 0 {
		return s.argv
	}
	if shell := s.w.Getenv("SHELL"); shell != "" {
		return []string{shell}
	}
	return []string{"/bin/sh"}
}

// work runs the command until it ends or the allocation does.
func (s *run) work(ctx context.Context, jobs []*core.Job, seq int64, signals <-chan os.Signal) (
	exit core.Exit, revoked bool,
) {
	argv := s.command()
	c := exec.Command(argv[0], argv[1:]...)
	info, err := s.c.Cluster(ctx)
	if err != nil {
		s.w.Errorf("%s", slurm.ErrorText(err))
		return core.Exit{Code: 1}, false
	}
	cluster := slurm.ClusterInfo{Name: info.Name}
	own := slurm.AllocEnv(jobs[0], cluster)
	if len(jobs) > 1 {
		own = slurm.SallocHetEnv(jobs, cluster)
	}
	c.Env = slurm.MergeEnv(slurm.WithoutJob(s.w.Environ), own)
	if s.r.Step.X11 != "" {
		vars, stop, err := display.Start(s.w, s.ask.Job, s.r.Step.X11, len(jobs[0].Alloc.Nodes))
		if err != nil {
			s.w.Errorf("%v", err)
			return core.Exit{Code: 1}, false
		}
		defer stop()
		c.Env = append(c.Env, display.Pass(vars))
	}
	if dir := s.r.Spec.IO.WorkDir; dir != "" {
		c.Dir = dir
	}
	c.Stdin, c.Stdout, c.Stderr = s.w.In, s.w.Out, s.w.Err
	tty := s.terminal(c)
	if err := c.Start(); err != nil {
		s.w.Errorf("Unable to exec command \"%s\"", argv[0])
		s.w.Infof("%v", err)
		return core.Exit{Code: 1}, false
	}
	over := make(chan error, 1)
	go func() { over <- c.Wait() }() // ends with the command
	watch, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() { // ends with watch
		s.untilEnded(watch, jobs[0].ID, seq)
		close(ended)
	}()
	defer tty.back()
	for {
		select {
		case err := <-over:
			return exitOf(err), revoked
		case got := <-signals:
			// a shell on a terminal has seen the others itself
			if !revoked && (got == syscall.SIGTERM || got == syscall.SIGHUP) {
				_ = c.Process.Signal(got) // it may have ended
			}
		case <-ended:
			if watch.Err() != nil {
				continue
			}
			ended, revoked = nil, true
			s.w.Infof("Job allocation %s has been revoked.", s.ask.Job)
			s.kill(c)
		}
	}
}

// kill ends a command whose allocation is gone: SIGHUP to a shell, as if its line was cut, or what --kill-command says.
func (s *run) kill(c *exec.Cmd) {
	sig := syscall.SIGHUP
	if len(s.argv) > 0 {
		if !s.r.Step.KillCommand {
			return // it may go on without its nodes, as in Slurm
		}
		sig = syscall.SIGTERM
	}
	if n := s.r.Step.KillSignal; n != 0 {
		sig = syscall.Signal(n)
	}
	_ = c.Process.Signal(sig) // it may have ended
}

// untilEnded returns when the job has its final state, or with ctx.
func (s *run) untilEnded(ctx context.Context, id core.JobID, seq int64) {
	for ctx.Err() == nil {
		err := s.c.Watch(ctx, seq, func(e *core.Event) error {
			seq = e.Seq
			if e.Job == id && (e.Kind == core.JobEnded || e.Kind == core.JobRequeued) {
				return io.EOF
			}
			return nil
		})
		if errors.Is(err, io.EOF) || core.CodeOf(err) == core.Denied {
			return
		}
		if list, err := s.c.Job(ctx, strconv.FormatInt(int64(id), 10)); err == nil && list.Jobs[0].State.Final() {
			return
		} else if err == nil {
			seq = list.Seq
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func exitOf(err error) core.Exit {
	var e *exec.ExitError
	switch {
	case err == nil:
		return core.Exit{}
	case errors.As(err, &e):
		if st, ok := e.Sys().(syscall.WaitStatus); ok && st.Signaled() {
			return core.Exit{Signal: int32(st.Signal())}
		}
		return core.Exit{Code: int32(e.ExitCode())}
	}
	return core.Exit{Code: 1}
}
