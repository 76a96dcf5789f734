package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
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

// hostile times one user's sbatch quiet, and while another floods the server from half of the machine's processors.
func (s *suite) hostile(ctx context.Context) error {
	const what = "sbatch while another user floods, p50 / p99"
	attacker, victim, err := people()
	if err != nil || os.Geteuid() != 0 {
		s.add(row{what: what, value: fmt.Sprintf("not measured: it needs root and the users of scripts/prereqs.sh (%v)", err), budget: "50 ms p99"})
		return nil
	}
	cl, err := s.up(ctx, nil, "--nodes", "2", "--cpus", "64", "--memory", "64G")
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
	flooded, stats, err := cl.underFlood(ctx, attacker, victim)
	if err != nil {
		return err
	}
	s.add(row{what: what, value: fmt.Sprintf("%s / %s", ms(pct(flooded, 50)), ms(pct(flooded, 99))),
		limit: fmt.Sprintf("%s / %s quiet", ms(pct(quiet, 50)), ms(pct(quiet, 99))), budget: "50 ms p99"})
	s.add(row{what: "  the attack", value: fmt.Sprintf("%d requests: %d served, %d refused, %d without an answer; %d streams, %d jobs, %d tokens",
		stats.Sent, stats.Served, stats.Refused, stats.Broken, stats.Streams, stats.Jobs, stats.Tokens)})
	s.add(row{what: "  server's memory, before and after (resident)", value: fmt.Sprintf("%d, %d MB", before>>20, rss(pid)>>20)})
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

// sbatchAs times the command, from fork to exit, so many times.
func (cl *cluster) sbatchAs(ctx context.Context, p person, n int) (times []time.Duration, err error) {
	for i := range n {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		path := filepath.Join(cl.dir, fmt.Sprintf("h%d.sh", i))
		if err := os.WriteFile(path, []byte(scriptOf(cl.dir, int64(i))), 0o755); err != nil {
			return nil, err
		}
		cmd := p.own(cl.command("sbatch", "--hold", "-o", os.DevNull, path))
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("sbatch as %s: %w: %s", p.name, err, out)
		}
		times = append(times, time.Since(began))
	}
	return times, nil
}

// underFlood times the victim's sbatch while the attacker's client floods and `yes` runs in 50 of its jobs.
func (cl *cluster) underFlood(ctx context.Context, attacker, victim person) (times []time.Duration, stats flood.Stats, err error) {
	var cages [2]*flood.Cage // half of the processors: one half of that for clients, one for jobs
	for i := range cages {
		if cages[i], err = flood.NewCage(fmt.Sprintf("bireme-flood-%d-%d", os.Getpid(), i), float64(runtime.NumCPU())/4); err != nil {
			return nil, stats, err
		}
		defer closeCage(cages[i])
	}
	for range 50 {
		cmd := attacker.own(cl.command("sbatch", "-n1", "--mem=16M", "-o", os.DevNull, "--wrap", "exec timeout 300 yes"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, stats, fmt.Errorf("sbatch as %s: %w: %s", attacker.name, err, out)
		}
	}
	if _, err := cages[1].PutUser(attacker.uid); err != nil {
		return nil, stats, err
	}
	end, err := cl.startFlood(attacker, cages[0])
	if err != nil {
		return nil, stats, err
	}
	times, err = cl.sbatchAs(ctx, victim, 1000)
	stats, err2 := end()
	if err == nil {
		err = err2
	}
	if out, cerr := attacker.own(cl.command("scancel", "-u", attacker.name)).CombinedOutput(); cerr != nil && err == nil {
		err = fmt.Errorf("scancel: %w: %s", cerr, out)
	}
	return times, stats, err
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

// startFlood runs this program as the attacker's client; the function ends it and gives what became of it.
func (cl *cluster) startFlood(p person, cage *flood.Cage) (func() (flood.Stats, error), error) {
	program := filepath.Join(cl.dir, "flood")
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		return nil, err
	}
	cmd := p.own(exec.Command(program))
	cmd.Env = flood.Env(cl.socket(), 100_000, 2000)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	r := bufio.NewReader(out)
	err = cage.Put(cmd.Process.Pid)
	line := ""
	if err == nil {
		line, err = r.ReadString('\n')
	}
	if err != nil || strings.TrimSpace(line) != "flooding" {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("the attacker said %q: %w", line, err)
	}
	return func() (stats flood.Stats, err error) {
		if err = cmd.Process.Signal(os.Interrupt); err == nil {
			if err = json.NewDecoder(r).Decode(&stats); err == nil {
				err = cmd.Wait()
			}
		}
		return stats, err
	}, nil
}
