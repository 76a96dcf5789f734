package srun

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"bireme.dev/bireme/internal/slurm/cmd"
)

// Casting gives the command with --bcast served by cast, which is sbcast: that runs srun itself, so it cannot be called
// from here.
func Casting(cast cmd.Func) cmd.Func {
	return func(ctx context.Context, w *cmd.World, args []string) int { return start(ctx, w, args, cast) }
}

// broadcast copies the program to the job's nodes if --bcast says so, and has the step run the copy. drop removes it.
func (s *run) broadcast(ctx context.Context) (drop func(), err error) {
	to := s.r.Step.Bcast
	if to == nil {
		return func() {}, nil
	}
	p := s.parts[0]
	if s.cast == nil || len(s.parts) > 1 || s.r.Step.MultiProg {
		return nil, fmt.Errorf("--bcast copies the one program of a step; sbcast copies more files")
	}
	source := p.r.Path(p.argv[0])
	if !strings.Contains(p.argv[0], "/") {
		if source, err = exec.LookPath(p.argv[0]); err != nil {
			return nil, fmt.Errorf("--bcast: %w", err)
		}
	}
	dest := *to
	if dest == "" || strings.HasSuffix(dest, "/") { // a name that no other step of the job has
		dest = filepath.Join(dest, fmt.Sprintf("slurm_bcast_%s.%d_%s", s.job, os.Getpid(), filepath.Base(source)))
	}
	if !filepath.IsAbs(dest) {
		dest = filepath.Join(p.r.WorkDir(), dest)
	}
	if is, serr := os.Stat(source); serr == nil {
		if at, serr := os.Stat(dest); serr == nil && os.SameFile(is, at) { // it would be removed at the end
			return nil, fmt.Errorf("--bcast: %s is the program itself; name another place", dest)
		}
	}
	if code := s.cast(ctx, s.aside("sbcast"), []string{"-f", "--jobid=" + s.job, source, dest}); code != 0 {
		return nil, fmt.Errorf("--bcast: %s could not be copied to %s", source, dest)
	}
	p.argv = append([]string{dest}, p.argv[1:]...)
	return func() { // a job that is over cannot, and need not be told of
		w := s.aside("srun")
		w.Out, w.Err = &bytes.Buffer{}, &bytes.Buffer{}
		_ = Run(context.WithoutCancel(ctx), w, []string{
			"-Q", "--jobid=" + s.job, "--overlap", "--overcommit",
			"--mpi=none", "--cpu-bind=none", "-i", "none", "-J", "bcast",
			"-D", "/", "rm", "-f", dest,
		})
	}, nil
}

// aside is the world of another command that srun runs for itself: options that came as variables are not for that one.
func (s *run) aside(name string) *cmd.World {
	w := *s.w
	w.Name, w.Environ = name, nil
	for _, e := range s.w.Environ {
		if !strings.HasPrefix(e, "SLURM_") || strings.HasPrefix(e, "SLURM_CONF=") {
			w.Environ = append(w.Environ, e)
		}
	}
	return &w
}
