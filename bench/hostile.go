package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"bireme.dev/bireme/test/hostile/flood"
)

// The users that scripts/prereqs.sh adds.
const (
	attackerName = "bireme-t1"
	victimName   = "bireme-t2"
)

// hostile times one user's sbatch quiet, and while another floods the server from half of the machine's processors
// until all of floodJobs submissions were answered.
func (s *suite) hostile(ctx context.Context) error {
	const what = "sbatch while another user floods, p50 / p99"
	attacker, victim, err := people()
	if err != nil || os.Geteuid() != 0 {
		s.add(row{what: what, value: fmt.Sprintf("not measured: it needs root and the users of scripts/prereqs.sh (%v)",
			err), budget: "50 ms p99"})
		return nil
	}
	cl, err := s.up(ctx, nil, "--nodes", "2", "--cpus", "64", "--memory", "64G",
		"--set", fmt.Sprintf("limits.connections=%d", flood.MaxConnections))
	if err != nil {
		return err
	}
	defer cl.down()
	if err := os.Chmod(cl.dir, 0o777); err != nil {
		return err
	}
	quiet, err := cl.sbatchAs(ctx, victim, 200)
	if err != nil {
		return err
	}
	pid, err := cl.serverPID()
	if err != nil {
		return err
	}
	before := rss(pid)
	wait := s.profile(cl, "hostile", 15*time.Second)
	defer wait()
	f, err := cl.underFlood(ctx, attacker, victim, s.flood)
	if err != nil {
		return err
	}
	s.add(row{
		what:  what,
		value: fmt.Sprintf("%s / %s of %d", ms(pct(f.sbatch, 50)), ms(pct(f.sbatch, 99)), len(f.sbatch)),
		limit: fmt.Sprintf("%s / %s quiet", ms(pct(quiet, 50)), ms(pct(quiet, 99))), budget: "50 ms p99",
	})
	s.add(row{
		what:  "  `sbatch --version` meanwhile, which asks nobody, p50 / p99",
		value: fmt.Sprintf("%s / %s", ms(pct(f.alone, 50)), ms(pct(f.alone, 99))),
	})
	s.add(row{
		what:  "  … and their job has run, p50 / max of 20",
		value: fmt.Sprintf("%s / %s", ms(pct(f.ran, 50)), ms(pct(f.ran, 100))),
	})
	for _, kind := range slices.Sorted(maps.Keys(f.stats)) {
		st := f.stats[kind]
		sent := fmt.Sprintf("%d sent", st.Sent)
		if kind == flood.Submissions {
			sent = fmt.Sprintf("%d of %d sent in %.0f s", st.Sent, floodJobs, f.lasted.Seconds())
		}
		value := fmt.Sprintf("%s, %d served, %d without an answer, %d errors", sent, st.Served, st.Broken, st.Errors)
		if kind == flood.Streams {
			value += fmt.Sprintf(", %d open", st.Open)
		}
		for _, why := range slices.Sorted(maps.Keys(st.Refused)) {
			value += fmt.Sprintf("; %d refused by %s", st.Refused[why], why)
		}
		s.add(row{what: "  flood of " + kind, value: value})
	}
	s.add(row{
		what:  "  server's memory, before and after (resident)",
		value: fmt.Sprintf("%d, %d MB", before>>20, rss(pid)>>20),
	})
	load, err := os.ReadFile("/proc/loadavg")
	if err == nil {
		s.add(row{what: "  load average at the end", value: strings.TrimSpace(string(load))})
	}
	return nil
}

// person is a user of the machine.
type person struct {
	name     string
	uid, gid uint32
}

func people() (attacker, victim person, err error) {
	for name, p := range map[string]*person{attackerName: &attacker, victimName: &victim} {
		u, err := user.Lookup(name)
		if err != nil {
			return attacker, victim, err
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 != nil || err2 != nil {
			return attacker, victim, fmt.Errorf("user %s has no numbers", name)
		}
		*p = person{name, uint32(uid), uint32(gid)}
	}
	return attacker, victim, nil
}

func (p person) own(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: p.uid, Gid: p.gid}}
	return cmd
}

// sbatchAs times the submission of so many jobs, each with a script of its own.
func (cl *cluster) sbatchAs(ctx context.Context, p person, n int) (times []time.Duration, err error) {
	for i := range n {
		path := filepath.Join(cl.dir, fmt.Sprintf("h%d.sh", i))
		if err := os.WriteFile(path, []byte(scriptOf(cl.dir, int64(i))), 0o755); err != nil {
			return nil, err
		}
		t, err := cl.timeAs(ctx, p, "sbatch", "--hold", "-o", os.DevNull, path)
		if err != nil {
			return nil, err
		}
		times = append(times, t)
	}
	return times, nil
}

// timeAs times a command from fork to exit.
func (cl *cluster) timeAs(ctx context.Context, p person, name string, args ...string) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	cmd := p.own(cl.command(name, args...))
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s as %s: %w: %s", name, p.name, err, out)
	}
	return time.Since(began), nil
}

// flooded is what was measured during a flood.
type flooded struct {
	sbatch, ran []time.Duration
	alone       []time.Duration // of the same program without a server
	stats       map[string]flood.Stats
	lasted      time.Duration // of the flood
}

// floodJobs is how many submissions the attacker has to make.
const floodJobs = 100_000

// underFlood times the victim's sbatch while the attacker's clients flood and `yes` runs in 50 of its jobs.
func (cl *cluster) underFlood(ctx context.Context, attacker, victim person, kinds []string) (f flooded, err error) {
	cage, err := flood.NewCage(fmt.Sprintf("bireme-flood-%d", os.Getpid()))
	if err != nil {
		return f, err
	}
	defer closeCage(cage)
	if len(kinds) == 0 || slices.Contains(kinds, "jobs") {
		if err := cl.yesJobs(attacker, cage); err != nil {
			return f, err
		}
	}
	attack, err := flood.Start(cage, flood.Order{
		Socket: cl.socket(), Program: filepath.Join(cl.dir, "flood"),
		Jobs: floodJobs, Streams: 1000, Kinds: kinds,
		Own: func(cmd *exec.Cmd) { attacker.own(cmd) },
	})
	if err != nil {
		return f, err
	}
	defer attack.Kill()
	began := time.Now()
	for sent := false; !sent; { // in turns, so that both have the same flood
		select {
		case <-attack.Sent():
			sent = true
		default:
		}
		times, err := cl.sbatchAs(ctx, victim, 100)
		if err != nil {
			return f, err
		}
		f.sbatch = append(f.sbatch, times...)
		for range len(times) {
			t, err := cl.timeAs(ctx, victim, "sbatch", "--version")
			if err != nil {
				return f, err
			}
			f.alone = append(f.alone, t)
		}
	}
	for range 20 {
		asked := time.Now()
		if out, err := victim.own(cl.command("sbatch", "--wait", "--mem=16M", "-o", os.DevNull, "--wrap", "true")).
			CombinedOutput(); err != nil {
			return f, fmt.Errorf("sbatch --wait as %s: %w: %s", victim.name, err, out)
		}
		f.ran = append(f.ran, time.Since(asked))
	}
	f.lasted = time.Since(began)
	if f.stats, err = attack.End(); err != nil {
		return f, err
	}
	cmd := cl.command("scancel", "-u", attacker.name) // by the administrator: the attacker's own is refused for a while
	if out, err := cmd.CombinedOutput(); err != nil {
		return f, fmt.Errorf("scancel: %w: %s", err, out)
	}
	return f, nil
}

// yesJobs starts 50 jobs of `yes`, one half with a file for their output and the other as runs, and puts them into the
// cage.
func (cl *cluster) yesJobs(p person, cage *flood.Cage) error {
	part, err := cage.Part("jobs")
	if err != nil {
		return err
	}
	for i := range 25 {
		out := filepath.Join(cl.dir, fmt.Sprintf("yes%d.out", i))
		cmd := p.own(cl.command("sbatch", "-n1", "--mem=16M", "-o", out, "--wrap", flood.Yes(out)))
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sbatch as %s: %w: %s", p.name, err, text)
		}
		file := filepath.Join(cl.dir, fmt.Sprintf("yes%d.dstack.yml", i))
		if err := os.WriteFile(file, []byte(flood.YesRun(i)), 0o644); err != nil {
			return err
		}
		cmd = p.own(cl.command("sbatch"))
		cmd.Path, cmd.Args = filepath.Join(cl.bin, "bireme"), []string{"bireme", "apply", "-y", "-d", "-f", file}
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apply as %s: %w: %s", p.name, err, text)
		}
	}
	for range 600 {
		out, err := cl.command("squeue", "-h", "-t", "R", "-u", p.name, "-o", "%i").Output()
		if err != nil {
			return err
		}
		n, err := part.PutUser(p.uid)
		if err != nil || n == 0 && strings.Count(string(out), "\n") == 50 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("the jobs of %s do not start", p.name)
}

// closeCage removes a cage when its last processes are gone.
func closeCage(c *flood.Cage) {
	for range 100 {
		if c.Close() == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}
