//go:build e2e

package step

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"bireme.dev/bireme/internal/wire"
)

// BenchmarkJobs runs jobs of "true" with a 2 KiB script, a 6 KiB environment and an output file through a keeper, four at a
// time, and the same work in a plain loop of fork, exec and wait. Compare jobs/s and CPU: go test -tags e2e -bench Jobs -benchtime 2000x.
func BenchmarkJobs(b *testing.B) {
	script, env := benchScript(), benchEnv()
	b.Run("plain", func(b *testing.B) { plainLoop(b, script, env) })
	b.Run("keeper", func(b *testing.B) { keeperLoop(b, "", script, env) })
	b.Run("keeper-games", func(b *testing.B) { keeperLoop(b, "games", script, env) })
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

func plainLoop(b *testing.B, script []byte, env []string) {
	dir := b.TempDir()
	work := make(chan int)
	var wg sync.WaitGroup
	start, before := time.Now(), cpuOf(syscall.RUSAGE_SELF)+cpuOf(syscall.RUSAGE_CHILDREN)
	b.ResetTimer()
	for range atOnce {
		wg.Go(func() {
			for i := range work {
				path := filepath.Join(dir, fmt.Sprintf("s%d", i))
				syscall.ForkLock.RLock()
				if err := os.WriteFile(path, script, 0o700); err != nil {
					b.Error(err)
				}
				syscall.ForkLock.RUnlock()
				out, err := os.Create(filepath.Join(dir, fmt.Sprintf("o%d", i)))
				if err != nil {
					b.Error(err)
				}
				pid, err := syscall.ForkExec(path, []string{path}, &syscall.ProcAttr{
					Env: append(env, fmt.Sprint("N=", i)), Files: []uintptr{0, out.Fd(), out.Fd()}, Sys: &syscall.SysProcAttr{Setsid: true},
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
				os.Remove(path)
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
}

func keeperLoop(b *testing.B, how string, script []byte, env []string) {
	cgroup := ""
	if how == "none" {
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
			Key:      wire.Key{Job: int64(i + 1), Step: wire.BatchStep, Node: "n1"},
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
	keeper := func() time.Duration { return procCPU(b, a.cmd.Process.Pid) }
	start, before := time.Now(), keeper()
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
	report(b, start, keeper()-before)
}

// procCPU is the CPU time of a process and its waited-for children.
func procCPU(b *testing.B, pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	var f [20]int64
	rest := string(raw[len(fmt.Sprintf("%d (x", pid)):])
	rest = rest[1+len(rest[:indexByte(rest, ')')]):]
	var state string
	if _, err := fmt.Sscan(rest, &state, &f[4], &f[5], &f[6], &f[7], &f[8], &f[9], &f[10], &f[11], &f[12], &f[13], &f[14], &f[15], &f[16], &f[17]); err != nil {
		b.Fatal(err)
	}
	return time.Duration(f[14]+f[15]+f[16]+f[17]) * 10 * time.Millisecond
}

func indexByte(s string, c byte) int {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == c {
			return i
		}
	}
	return -1
}
