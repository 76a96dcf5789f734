//go:build e2e

package step

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// BenchmarkJobs runs jobs of "true" with a 2 KiB script, a 6 KiB environment and an output file through a keeper, four
// at a time, and the same work in a plain loop of fork, exec and wait; that also with one script for all jobs, which is
// the machine's limit. Compare jobs/s and CPU: go test -tags e2e -run xx -bench Jobs -benchtime 2000x.
func BenchmarkJobs(b *testing.B) {
	script, env := benchScript(), benchEnv()
	b.Run("plain", func(b *testing.B) { plainLoop(b, script, env, true) })
	b.Run("plain-one-script", func(b *testing.B) { plainLoop(b, script, env, false) })
	b.Run("keeper", func(b *testing.B) { keeperLoop(b, "", script, env) })
	b.Run("keeper-slurm", func(b *testing.B) { keeperLoop(b, "", script, append(env, "SLURM_JOB_ID=1")) })
	b.Run("keeper-games", func(b *testing.B) { keeperLoop(b, "games", script, env) })
	b.Run("keeper-v1", func(b *testing.B) { keeperLoop(b, "v1", script, env) })
	b.Run("weak", func(b *testing.B) { keeperLoop(b, "none", script, env) })
}

func benchScript() []byte {
	s := []byte("#!/bin/sh\n")
	for len(s) < 2<<10 {
		s = append(s, "# a comment that makes the script as long as usual scripts are\n"...)
	}
	return append(s, "true\n"...)
}

func benchEnv() []string {
	env := []string{"PATH=/usr/bin:/bin"}
	for i := range 90 {
		env = append(env, fmt.Sprintf("VARIABLE_%d=%060d", i, i))
	}
	return env
}

const atOnce = 4

func report(b *testing.B, start time.Time, cpu time.Duration) {
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "jobs/s")
	b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms/job")
}

func cpuOf(who int) time.Duration {
	var ru syscall.Rusage
	_ = syscall.Getrusage(who, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func plainLoop(b *testing.B, script []byte, env []string, each bool) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(4, runtime.NumCPU()))) // as the keeper
	dir := b.TempDir()
	one := filepath.Join(dir, "script")
	if err := os.WriteFile(one, script, 0o700); err != nil {
		b.Fatal(err)
	}
	work := make(chan int)
	var wg sync.WaitGroup
	own := cpuOf(syscall.RUSAGE_SELF)
	start, before := time.Now(), own+cpuOf(syscall.RUSAGE_CHILDREN)
	b.ResetTimer()
	for range atOnce {
		wg.Go(func() {
			for i := range work {
				path := one
				if each {
					path = filepath.Join(dir, fmt.Sprintf("s%d", i))
					syscall.ForkLock.RLock()
					if err := os.WriteFile(path, script, 0o700); err != nil {
						b.Error(err)
					}
					syscall.ForkLock.RUnlock()
				}
				out, err := os.Create(filepath.Join(dir, fmt.Sprintf("o%d", i)))
				if err != nil {
					b.Error(err)
				}
				pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{
					Env: append(env, fmt.Sprint("N=", i)), Files: []uintptr{0, out.Fd(), out.Fd()},
					Sys: &syscall.SysProcAttr{Setsid: true},
				})
				if err != nil {
					b.Error(err)
					return
				}
				var ws syscall.WaitStatus
				for _, err := syscall.Wait4(pid, &ws, 0, nil); err == syscall.EINTR; {
					_, err = syscall.Wait4(pid, &ws, 0, nil)
				}
				out.Close()
				if each {
					os.Remove(path)
				}
			}
		})
	}
	for i := range b.N {
		work <- i
	}
	close(work)
	wg.Wait()
	b.StopTimer()
	report(b, start, cpuOf(syscall.RUSAGE_SELF)+cpuOf(syscall.RUSAGE_CHILDREN)-before)
	b.ReportMetric(float64((cpuOf(syscall.RUSAGE_SELF)-own).Microseconds())/1000/float64(b.N), "own-cpu-ms/job")
}

func keeperLoop(b *testing.B, how string, script []byte, env []string) {
	cgroup := ""
	if how == "none" || how == "v1" {
		cgroup = how
	}
	a := startKeeper(b, cgroup)
	id := wire.Identity{}
	if how == "games" {
		id = wire.Identity{UID: 5, GID: 60, Name: "games"}
	}
	out := filepath.Join(a.dir, "out")
	if err := os.Mkdir(out, 0o777); err != nil {
		b.Fatal(err)
	}
	_ = os.Chmod(out, 0o777)
	submit := func(i int) {
		if err := a.conn.SendLaunch(&wire.Launch{
			Key:      wire.Key{Job: core.JobID(i + 1), Step: wire.BatchStep, Node: "n1"},
			Identity: id,
			Program:  wire.Program{WorkDir: out},
			Stdio:    wire.Stdio{Stdout: "slurm-%j.out", NoticePrefix: "slurmstepd: error: "},
			Time:     wire.Timing{Limit: time.Hour},
			Limits:   wire.Limits{Memory: 100 << 20},
			TmpBase:  a.dir,
			EndsJob:  true,
			Script:   script,
			Env:      wire.JoinEnv(append(env, fmt.Sprint("N=", i))),
		}); err != nil {
			b.Fatal(err)
		}
	}
	start := time.Now()
	all, own := keeperCPU(b, a.cmd.Process.Pid)
	b.ResetTimer()
	sent := 0
	for ; sent < min(atOnce, b.N); sent++ {
		submit(sent)
	}
	for done := 0; done < b.N; done++ {
		var x wire.Exited
		for {
			f, err := a.conn.Next()
			if err != nil {
				b.Fatal(err)
			}
			if f.Type == wire.TypeExited {
				if err := f.Decode(&x); err != nil {
					b.Fatal(err)
				}
				break
			}
		}
		if x.ExitCode != 0 || x.Cause != "" || !x.JobDone {
			b.Fatalf("%+v", x)
		}
		a.send(wire.TypeAckExit, wire.AckExit{Keys: []wire.Key{x.Key}})
		if sent < b.N {
			submit(sent)
			sent++
		}
	}
	b.StopTimer()
	all2, own2 := keeperCPU(b, a.cmd.Process.Pid)
	report(b, start, all2-all)
	b.ReportMetric(float64((own2-own).Microseconds())/1000/float64(b.N), "own-cpu-ms/job")
}

// keeperCPU is the CPU time of a keeper and of what it waited for, and its own part of it.
func keeperCPU(b *testing.B, pid int) (all, own time.Duration) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	f := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	for i, field := range f[11:15] { // utime, stime, cutime, cstime, in 1/100 s
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		all += time.Duration(n) * 10 * time.Millisecond
		if i == 1 {
			own = all
		}
	}
	return all, own
}
