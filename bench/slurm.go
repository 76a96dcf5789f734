package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// side is one of the two clusters that do the same work by the same commands.
type side interface {
	command(name string, args ...string) *exec.Cmd
	folder() string
}

func (cl *cluster) folder() string { return cl.dir }

// peer is a running Slurm.
type peer struct {
	dir string
	env []string
}

func (p *peer) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	return cmd
}

func (p *peer) folder() string { return p.dir }

// both are a cluster of ours and one of Slurm's of the same shape: it is read from the same slurm.conf.
type both struct {
	s            *suite
	ours, theirs side
}

// slurm starts a real Slurm by scripts/slurm-up.sh and a cluster of ours beside it, and has both do the same. Short
// things are done in turn, so that what else the machine does falls on both alike.
func (s *suite) slurm(ctx context.Context) error {
	dir, err := os.MkdirTemp(scratch, "slurm-")
	if err != nil {
		return err
	}
	defer exec.Command("bash", "scripts/slurm-down.sh", dir).Run()
	up := exec.CommandContext(ctx, "bash", "scripts/slurm-up.sh", dir, "8")
	up.Stderr = os.Stderr
	if err := up.Run(); err != nil {
		return fmt.Errorf("scripts/slurm-up.sh: %w", err)
	}
	conf := filepath.Join(dir, "slurm.conf")
	cl, err := s.up(ctx, nil, "--slurm-conf", conf)
	if err != nil {
		return err
	}
	defer cl.down()
	b := &both{
		s: s, ours: cl,
		theirs: &peer{dir: dir, env: append(envOf(1), "SLURM_CONF="+conf, "PATH="+os.Getenv("PATH"))},
	}
	for _, r := range []struct {
		name string
		f    func(context.Context) error
	}{
		{"sbatch", b.sbatch},
		{"srun", b.srun},
		{"srun", b.wide},
		{"true", b.jobs},
		{"array", b.array(1000)},
		{"array", b.array(5000)},
		{"squeue", b.squeue},
	} {
		if !s.wants(r.name) {
			continue
		}
		if err := r.f(ctx); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	return nil
}

// inTurn times n runs of f on either side.
func (b *both) inTurn(ctx context.Context, n int, f func(side, int) error) (ours, theirs []time.Duration, err error) {
	for i := range n {
		for _, on := range []struct {
			side  side
			times *[]time.Duration
		}{{b.ours, &ours}, {b.theirs, &theirs}} {
			began := time.Now()
			if err := f(on.side, i); err != nil {
				return nil, nil, err
			}
			*on.times = append(*on.times, time.Since(began))
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
	}
	return ours, theirs, nil
}

func (b *both) times(what string, ours, theirs []time.Duration) {
	text := func(t []time.Duration) string { return fmt.Sprintf("%s / %s", ms(pct(t, 50)), ms(pct(t, 99))) }
	b.s.add(row{
		what: what + ", wall, p50 / p99", value: text(ours), limit: "Slurm " + text(theirs),
		ratio: fmt.Sprintf("%.1f ×", pct(theirs, 50).Seconds()/pct(ours, 50).Seconds()), budget: "ahead",
	})
}

func (b *both) rates(what string, n int, ours, theirs time.Duration, floor string) {
	rate := func(d time.Duration) float64 { return float64(n) / d.Seconds() }
	b.s.add(row{
		what: what, value: fmt.Sprintf("%.0f/s (%.1f s)", rate(ours), ours.Seconds()),
		limit: fmt.Sprintf("Slurm %.0f/s (%.1f s)", rate(theirs), theirs.Seconds()),
		ratio: fmt.Sprintf("%.1f ×", theirs.Seconds()/ours.Seconds()), budget: floor,
	})
}

func script(on side, name string, i int64) (string, error) {
	path := filepath.Join(on.folder(), fmt.Sprintf("%s%d.sh", name, i))
	return path, os.WriteFile(path, []byte(scriptOf(on.folder(), i)), 0o755)
}

// said runs a command and gives what it printed.
func said(cmd *exec.Cmd) (string, error) {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, out)
	}
	return string(out), nil
}

func (b *both) sbatch(ctx context.Context) error {
	ours, theirs, err := b.inTurn(ctx, 200, func(on side, i int) error {
		path, err := script(on, "s", int64(i))
		if err == nil {
			_, err = said(on.command("sbatch", "--hold", "-o", os.DevNull, path))
		}
		return err
	})
	if err != nil {
		return err
	}
	b.times("sbatch", ours, theirs)
	for _, on := range []side{b.ours, b.theirs} {
		if _, err := said(on.command("scancel", "-u", "root")); err != nil {
			return err
		}
	}
	return nil
}

func (b *both) srun(ctx context.Context) error {
	ours, theirs, err := b.inTurn(ctx, 40, func(on side, _ int) error {
		_, err := said(on.command("srun", "true"))
		return err
	})
	if err == nil {
		b.times("srun true", ours, theirs)
	}
	return err
}

func (b *both) wide(ctx context.Context) error {
	ours, theirs, err := b.inTurn(ctx, 20, func(on side, _ int) error {
		out, err := said(on.command("srun", "-N8", "hostname"))
		if n := strings.Count(out, "\n"); err == nil && n != 8 {
			err = fmt.Errorf("srun -N8 hostname: %d lines: %s", n, out)
		}
		return err
	})
	if err == nil {
		b.times("srun -N8 hostname", ours, theirs)
	}
	return err
}

// jobs submits from 4 clients, a process of sbatch for each job, and waits for the last job.
func (b *both) jobs(ctx context.Context) error {
	n := min(b.s.jobs, 500)
	var submitted, ended [2]time.Duration
	for k, on := range []side{b.ours, b.theirs} {
		var next atomic.Int64
		var wg sync.WaitGroup
		var failed atomic.Pointer[error]
		began := time.Now()
		for range 4 {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n) && failed.Load() == nil; i = next.Add(1) {
					path, err := script(on, "t", i)
					if err == nil {
						_, err = said(on.command("sbatch", "-Q", "-o", filepath.Join(on.folder(), "job-%j.out"), path))
					}
					if err != nil {
						failed.Store(&err)
					}
				}
			})
		}
		wg.Wait()
		if e := failed.Load(); e != nil {
			return *e
		}
		submitted[k] = time.Since(began)
		if err := over(ctx, on); err != nil {
			return err
		}
		ended[k] = time.Since(began)
		if err := printed(on, "job-*.out", n); err != nil {
			return err
		}
	}
	b.rates(fmt.Sprintf("%d jobs submitted by sbatch, 4 at a time", n), n, submitted[0], submitted[1], "ahead")
	b.rates("  … and run to the last one's end", n, ended[0], ended[1], "")
	return nil
}

// array runs an array of n tasks of `true` from its submission to the last one's end.
func (b *both) array(n int) func(context.Context) error {
	return func(ctx context.Context) error {
		var took [2]time.Duration
		for k, on := range []side{b.ours, b.theirs} {
			path, err := script(on, "a", int64(n))
			if err != nil {
				return err
			}
			began := time.Now()
			if _, err := said(on.command("sbatch", "-Q", fmt.Sprintf("--array=1-%d", n), "-o",
				filepath.Join(on.folder(), fmt.Sprintf("array%d-%%a.out", n)), path)); err != nil {
				return err
			}
			if err := over(ctx, on); err != nil {
				return err
			}
			took[k] = time.Since(began)
			if err := printed(on, fmt.Sprintf("array%d-*.out", n), n); err != nil {
				return err
			}
		}
		b.rates(fmt.Sprintf("array of %d tasks of true, end to end", n), n, took[0], took[1], "5 ×")
		return nil
	}
}

// over waits until no job is left.
func over(ctx context.Context, on side) error {
	for until := time.Now().Add(10 * time.Minute); ; {
		out, err := on.command("squeue", "-h", "-t", "PD,R,CG", "-o", "%T").Output()
		if err != nil {
			return fmt.Errorf("squeue: %w", err)
		}
		if len(out) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return errors.New("the jobs did not end in ten minutes")
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printed checks that a figure stands for work that was done: every job made its output file.
func printed(on side, pattern string, n int) error {
	list, err := filepath.Glob(filepath.Join(on.folder(), pattern))
	if err == nil && len(list) != n {
		err = fmt.Errorf("%d of %d jobs made their output file %s", len(list), n, pattern)
	}
	return err
}

// squeue lists an array of many tasks, a line each.
func (b *both) squeue(ctx context.Context) error {
	for _, on := range []side{b.ours, b.theirs} {
		path, err := script(on, "q", 0)
		if err == nil {
			_, err = said(on.command("sbatch", "--hold", "--array=1-"+fmt.Sprint(b.s.queue), "-o", os.DevNull, path))
		}
		if err != nil {
			return err
		}
	}
	ours, theirs, err := b.inTurn(ctx, 5, func(on side, _ int) error {
		out, err := on.command("squeue", "-h", "-r").Output()
		if n := strings.Count(string(out), "\n"); err == nil && n != b.s.queue {
			err = fmt.Errorf("%d lines of %d tasks", n, b.s.queue)
		}
		return err
	})
	if err == nil {
		b.times(fmt.Sprintf("squeue -r over an array of %d", b.s.queue), ours, theirs)
	}
	return err
}
