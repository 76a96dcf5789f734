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

// slurm does the same work on a real Slurm, started by scripts/slurm-up.sh, and prints its figures beside ours.
func (s *suite) slurm(ctx context.Context) error {
	dir, err := os.MkdirTemp(scratch, "slurm-")
	if err != nil {
		return err
	}
	up := exec.CommandContext(ctx, "bash", "scripts/slurm-up.sh", dir, "8")
	up.Stderr = os.Stderr
	if err := up.Run(); err != nil {
		return fmt.Errorf("scripts/slurm-up.sh: %w", err)
	}
	defer exec.Command("bash", "scripts/slurm-down.sh", dir).Run()
	p := &peer{dir: dir, env: append(envOf(1), "SLURM_CONF="+filepath.Join(dir, "slurm.conf"), "PATH="+os.Getenv("PATH"))}
	if err := s.slurmSbatch(p); err != nil {
		return err
	}
	if err := s.slurmTrue(ctx, p); err != nil {
		return err
	}
	return s.slurmSqueue(ctx, p)
}

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

func (s *suite) slurmSbatch(p *peer) error {
	var times []time.Duration
	for i := range 100 {
		path := filepath.Join(p.dir, fmt.Sprintf("s%d.sh", i))
		if err := os.WriteFile(path, []byte(scriptOf(p.dir, int64(i))), 0o755); err != nil {
			return err
		}
		cmd := p.command("sbatch", "--hold", "-o", os.DevNull, path)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sbatch: %w: %s", err, out)
		}
		times = append(times, time.Since(began))
	}
	p.command("scancel", "-u", "root").Run()
	s.peer("sbatch, wall, p50 / p99", fmt.Sprintf("Slurm %s / %s", ms(pct(times, 50)), ms(pct(times, 99))), pct(times, 50))
	return nil
}

// peer puts Slurm's figure beside ours and, for the first duration of ours, the ratio.
func (s *suite) peer(prefix, text string, theirs time.Duration) {
	for i := range s.rows {
		if !strings.HasPrefix(s.rows[i].what, prefix) {
			continue
		}
		s.rows[i].limit = text
		var ours float64
		if _, err := fmt.Sscanf(s.rows[i].value, "%f ms", &ours); err == nil && theirs > 0 {
			s.rows[i].ratio = fmt.Sprintf("%.2f of its time", ours/(theirs.Seconds()*1e3))
		}
		progress("  %s: %s", prefix, text)
		return
	}
	s.add(row{what: prefix + " (Slurm)", value: text})
}

// slurmTrue submits from 4 clients and waits for the last job; fewer jobs, for the same table in reasonable time.
func (s *suite) slurmTrue(ctx context.Context, p *peer) error {
	n := min(s.jobs, 500)
	var next atomic.Int64
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	began := time.Now()
	for range 4 {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n) && failed.Load() == nil; i = next.Add(1) {
				path := filepath.Join(p.dir, fmt.Sprintf("t%d.sh", i))
				err := os.WriteFile(path, []byte(scriptOf(p.dir, i)), 0o755)
				if err == nil {
					err = p.command("sbatch", "-Q", "-o", filepath.Join(p.dir, "out-%j"), path).Run()
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
	submitted := time.Since(began)
	for {
		out, err := p.command("squeue", "-h", "-t", "all", "-o", "%T").Output()
		if err != nil {
			return err
		}
		if !strings.Contains(string(out), "PENDING") && !strings.Contains(string(out), "RUNNING") && !strings.Contains(string(out), "COMPLETING") {
			break
		}
		if time.Since(began) > 5*time.Minute {
			return errors.New("its Slurm did not finish its jobs in five minutes")
		}
		time.Sleep(50 * time.Millisecond)
	}
	rate := float64(n) / time.Since(began).Seconds()
	s.add(row{what: fmt.Sprintf("Slurm: %d jobs of true end to end, 8 nodes, jobs/s", n), value: fmt.Sprintf("%.0f", rate), limit: fmt.Sprintf("%.0f forked/s", s.lim.fork), ratio: fmt.Sprintf("%.2f", rate/s.lim.fork)})
	s.add(row{what: "Slurm: submissions/s by sbatch, 4 clients", value: fmt.Sprintf("%.0f", float64(n)/submitted.Seconds())})
	return nil
}

// slurmSqueue fills the queue by arrays, which Slurm takes quickly, one record a task once they are listed.
func (s *suite) slurmSqueue(ctx context.Context, p *peer) error {
	path := filepath.Join(p.dir, "q.sh")
	if err := os.WriteFile(path, []byte(scriptOf(p.dir, 0)), 0o755); err != nil {
		return err
	}
	if out, err := p.command("sbatch", "--hold", "--array=1-"+fmt.Sprint(s.queue), "-o", os.DevNull, path).CombinedOutput(); err != nil {
		return fmt.Errorf("sbatch --array: %w: %s", err, out)
	}
	var times []time.Duration
	for range 5 {
		cmd := p.command("squeue", "-r")
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return err
		}
		times = append(times, time.Since(began))
	}
	s.peer("squeue over", "Slurm "+ms(pct(times, 50))+" (array, -r)", pct(times, 50))
	return ctx.Err()
}
