package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sched is the planner over the seeded load of 10,000 nodes and 100,000 jobs that wait, by the Go benchmarks beside it.
func (s *suite) sched(ctx context.Context) error {
	const size = "nodes=10000/pending=100000"
	cold, err := gobench(ctx, "./internal/sched", "ColdPass/"+size, "10x")
	if err != nil {
		return err
	}
	s.add(row{
		what: "cold EASY pass, 10,000 nodes, 100,000 pending", value: fmt.Sprintf("%.0f ms", cold["ns/op"]/1e6),
		budget: "1 s",
	})
	// As many events as a p99 needs.
	inc, err := gobench(ctx, "./internal/sched", "IncrementalPass/"+size, "6000x")
	if err != nil {
		return err
	}
	s.add(row{
		what:  "… a pass after one event, p50 / p99",
		value: fmt.Sprintf("%.2f / %.2f ms", inc["p50-ms"], inc["p99-ms"]), budget: "5 ms",
	})
	s.add(row{what: "… the same by CPU time", value: fmt.Sprintf("%.2f / %.2f ms", inc["cpu-p50-ms"], inc["cpu-p99-ms"])})
	mem, err := gobench(ctx, "./internal/engine/state", "Memory", "1x")
	if err != nil {
		return err
	}
	s.add(row{
		what:  "memory a pending job, state and planner: live / resident",
		value: fmt.Sprintf("%.0f / %.0f B", mem["bytes/job"], mem["resident-bytes/job"]), budget: "1.5 KiB",
	})
	for _, clients := range []int{1, 8} {
		sub, err := gobench(ctx, "./internal/engine", fmt.Sprintf("SubmitWhilePlanned/%s/clients=%d", size, clients), "5000x")
		if err != nil {
			return err
		}
		s.add(row{
			what:  fmt.Sprintf("durable submission while that is planned, %d client(s), p50 / p99", clients),
			value: fmt.Sprintf("%.1f / %.1f ms", sub["p50-ms"], sub["p99-ms"]), budget: "20 ms",
		})
	}
	return nil
}

// gobench runs one Go benchmark and gives what it measured, by unit. It matches the whole of each part of the name.
func gobench(ctx context.Context, pkg, name, times string) (map[string]float64, error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = parts[i] + "$"
	}
	cmd := exec.CommandContext(ctx, envOr("GO", "go"), "test", "-run", "^$", "-bench", strings.Join(parts, "/"),
		"-benchtime", times, pkg)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		got := map[string]float64{}
		for i := 2; i+1 < len(f); i += 2 {
			if got[f[i+1]], err = strconv.ParseFloat(f[i], 64); err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
		}
		return got, nil
	}
	return nil, fmt.Errorf("%s measured nothing:\n%s", cmd, out)
}

// traces replays the longest trace in the folder that BIREME_TRACES names, if it is there, and half of it.
func (s *suite) traces(ctx context.Context) error {
	dir := os.Getenv("BIREME_TRACES")
	if dir == "" {
		progress("  left out: BIREME_TRACES names no folder of traces")
		return nil
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "bireme"), "simulate", "--trace",
		filepath.Join(dir, "CEA-Curie-2011-2.1-cln.swf.gz"), "--rule", "easy")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	took := time.Since(began)
	jobs, err := jobsOf(string(out))
	if err != nil {
		return err
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	s.add(row{
		what: "simulated jobs/s, Curie trace, EASY", value: fmt.Sprintf("%.0f", jobs/took.Seconds()),
		budget: "100,000",
	})
	s.add(row{
		what:  "… by CPU time; most memory",
		value: fmt.Sprintf("%.0f; %.0f MB", jobs/cpu.Seconds(), float64(u.Maxrss)/1e3),
	})
	return nil
}

// jobsOf reads how many jobs a simulation had.
func jobsOf(out string) (float64, error) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "jobs" {
			return strconv.ParseFloat(strings.ReplaceAll(f[1], ",", ""), 64)
		}
	}
	return 0, fmt.Errorf("the simulation does not say how many jobs it had:\n%s", out)
}
