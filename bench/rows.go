package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// bodiesAhead bounds the memory of requests made in advance: 180 MB.
const bodiesAhead = 20_000

// load submits n jobs from so many clients and returns how long it took. Jobs are numbered from first.
func (cl *cluster) load(ctx context.Context, n, clients int, first int64, shape func(*client.Submit)) (
	time.Duration, error,
) {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	bodies := make(chan []byte, min(n, bodiesAhead)) // made before the clock starts: what is measured is not their making
	making := make(chan struct{})
	go func() {
		defer close(bodies)
		for i := range int64(n) {
			if i == int64(cap(bodies)) {
				close(making)
			}
			s := client.Submit{Script: scriptOf(cl.dir, first+i), Env: envOf(first + i), Key: client.NewKey()}
			s.Spec.Name, s.Spec.IO.WorkDir = "bench", cl.dir
			s.Spec.IO.Stdout = filepath.Join(cl.dir, "out", "job-%j.out")
			s.Spec.Shape.Tasks = 1
			s.Spec.Shape.MemPerCPU = 16 * core.MiB
			shape(&s)
			b, _ := json.Marshal(&s)
			bodies <- b
		}
		if n <= cap(bodies) {
			close(making)
		}
	}()
	<-making
	began := time.Now()
	sock := cl.socket()
	for range clients {
		hc := unixClient(sock)
		wg.Go(func() {
			defer hc.CloseIdleConnections()
			for b := range bodies {
				if failed.Load() != nil || ctx.Err() != nil {
					continue
				}
				if err := post(ctx, hc, b); err != nil {
					failed.Store(&err)
				}
				next.Add(1)
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if e := failed.Load(); e != nil {
		return 0, *e
	}
	return took, ctx.Err()
}

func post(ctx context.Context, hc *http.Client, body []byte) error {
	for {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://bireme"+client.PathSubmit, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := hc.Do(req)
		if err != nil {
			return err
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		switch {
		case resp.StatusCode < 300:
			return nil
		case resp.StatusCode == http.StatusTooManyRequests:
			time.Sleep(5 * time.Millisecond)
		default:
			return fmt.Errorf("submit: %s: %s", resp.Status, text)
		}
	}
}

func hold(s *client.Submit) { s.Spec.Hold = true }

func (s *suite) submissions(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	n := 2000
	took, err := cl.load(ctx, n, 1, 0, hold)
	if err != nil {
		return err
	}
	s.rate("durable submissions/s, 1 client", float64(n)/took.Seconds(), s.lim.rpc1, "round trips/s", "")
	n = 20_000
	cpu := cl.cpu()
	wait := s.profile(cl, "submit", 3*time.Second)
	if took, err = cl.load(ctx, n, 32, 1_000_000, hold); err != nil {
		return err
	}
	wait()
	s.rate("durable submissions/s, 32 clients", float64(n)/took.Seconds(), s.lim.rpc32, "round trips/s", "5,000/s")
	s.add(row{
		what:  "  server CPU a submission",
		value: fmt.Sprintf("%.0f µs", cl.cpu().sub(cpu).server.Seconds()*1e6/float64(n)),
	})
	return nil
}

func (s *suite) rate(what string, got, limit float64, unit, floor string) {
	s.add(row{
		what: what, value: fmt.Sprintf("%.0f", got), limit: fmt.Sprintf("%.0f %s", limit, unit),
		ratio: fmt.Sprintf("%.2f", got/limit), budget: floor,
	})
}

// slowDisk adds 5 ms to every fsync and fdatasync of the whole cluster, by the kernel's tracing.
func (s *suite) slowDisk(ctx context.Context) error {
	strace, err := exec.LookPath("strace")
	if err != nil {
		s.add(row{
			what:  "durable submissions/s, 32 clients, fsync + 5 ms",
			value: "not measured: strace is not installed", budget: "2,000/s",
		})
		return nil
	}
	cl, err := s.up(ctx, []string{
		strace, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=fsync,fdatasync",
		"-e", "inject=fsync,fdatasync:delay_exit=5000",
	})
	if err != nil {
		return err
	}
	defer cl.down()
	n := 8000
	took, err := cl.load(ctx, n, 32, 0, hold)
	if err != nil {
		return err
	}
	s.rate("durable submissions/s, 32 clients, fsync + 5 ms", float64(n)/took.Seconds(), 32/0.005,
		"(32 clients each 5 ms)", "2,000/s")
	return nil
}

// sbatch times the command, from fork to exit, on an idle cluster.
func (s *suite) sbatch(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	var times []time.Duration
	for i := range 200 {
		path := filepath.Join(cl.dir, fmt.Sprintf("s%d.sh", i))
		if err := os.WriteFile(path, []byte(scriptOf(cl.dir, int64(i))), 0o755); err != nil {
			return err
		}
		cmd := cl.command("sbatch", "--hold", path)
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("sbatch: %w: %s", err, out)
		}
		times = append(times, time.Since(began))
	}
	s.add(row{
		what: "sbatch, wall, p50 / p99", value: fmt.Sprintf("%s / %s", ms(pct(times, 50)), ms(pct(times, 99))),
		budget: "below Slurm's",
	})
	cmd := exec.Command(filepath.Join(cl.bin, "bireme"), "--version")
	cmd.Run()
	var cpu time.Duration
	const runs = 50
	for range runs {
		cmd := exec.Command(filepath.Join(cl.bin, "bireme"), "--version")
		if err := cmd.Run(); err != nil {
			return err
		}
		cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	s.add(row{what: "bireme --version, CPU", value: ms(cpu / runs), budget: "3 ms"})
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

func pct(v []time.Duration, p int) time.Duration {
	v = slices.Sorted(slices.Values(v))
	return v[min(len(v)-1, p*len(v)/100)]
}

// startLatency is from the submit call to the user's first instruction, told through a pipe the job opens.
func (s *suite) startLatency(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	fifo := filepath.Join(cl.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		return err
	}
	f, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	hc := unixClient(cl.socket())
	var times []time.Duration
	for i := range int64(200) {
		sub := client.Submit{
			Script: "#!/bin/sh\necho x > " + fifo + "\n" + padding(i, 2000, "# "), Env: envOf(i),
			Key: client.NewKey(),
		}
		sub.Spec.Name, sub.Spec.IO.WorkDir, sub.Spec.Shape.Tasks, sub.Spec.IO.Stdout = "start", cl.dir, 1, os.DevNull
		sub.Spec.Shape.MemPerCPU = 16 * core.MiB
		body, _ := json.Marshal(&sub)
		began := time.Now()
		if err := post(ctx, hc, body); err != nil {
			return err
		}
		if _, err := r.ReadString('\n'); err != nil {
			return err
		}
		times = append(times, time.Since(began))
		if err := cl.drained(ctx); err != nil {
			return err
		}
	}
	s.add(row{
		what:  "submit → user process starts, idle node, p50 / p99",
		value: fmt.Sprintf("%s / %s", ms(pct(times, 50)), ms(pct(times, 99))), budget: "15 ms p50",
	})
	return nil
}

// drained waits until no job is live, by the watch of the cluster's counts.
func (cl *cluster) drained(ctx context.Context) error {
	for ctx.Err() == nil {
		c, err := cl.c.Cluster(ctx)
		if err != nil {
			return err
		}
		n := 0
		for _, k := range c.Jobs {
			n += k
		}
		if n == 0 {
			return nil
		}
		time.Sleep(25 * time.Millisecond) // each look counts every job
	}
	return ctx.Err()
}

// trueJobs runs jobs of `true` from submission to the last one's end.
func (s *suite) trueJobs(ctx context.Context) error {
	for _, nodes := range []int{1, 8} {
		cl, err := s.up(ctx, nil, "--nodes", fmt.Sprint(nodes), "--cpus", fmt.Sprint(8/nodes), "--memory", "64G")
		if err != nil {
			return err
		}
		err = func() error {
			defer cl.down()
			if err := os.MkdirAll(filepath.Join(cl.dir, "out"), 0o755); err != nil {
				return err
			}
			// it swings: measured beside what it is put beside
			if s.lim.fork, s.lim.forkCPU, err = forkLimit(cl.dir, 3000); err != nil {
				return err
			}
			wait := s.profile(cl, fmt.Sprintf("true%d", nodes), 5*time.Second)
			defer wait()
			cpu, began := cl.cpu(), time.Now()
			if _, err := cl.load(ctx, s.jobs, 32, 0, func(*client.Submit) {}); err != nil {
				return err
			}
			submitted := time.Since(began)
			if err := cl.drained(ctx); err != nil {
				return err
			}
			took := time.Since(began)
			used := cl.cpu().sub(cpu)
			each := func(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1e3/float64(s.jobs)) }
			s.rate(fmt.Sprintf("%d jobs of true end to end, %d node(s), jobs/s", s.jobs, nodes),
				float64(s.jobs)/took.Seconds(), s.lim.fork, "forked/s", "0.45 (aim 0.6)")
			s.add(row{
				what: "  CPU a job (submitting took " + submitted.Round(time.Millisecond).String() + ")",
				value: fmt.Sprintf("%s ms: server %s, agents %s, keepers %s, jobs %s", each(used.total()),
					each(used.server), each(used.agents), each(used.keepers), each(used.jobs)), limit: ms(s.lim.forkCPU),
			})
			return cl.verify(ctx, s.jobs)
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// verify checks that a figure stands for work that was done: every job COMPLETED.
func (cl *cluster) verify(ctx context.Context, n int) error {
	out, err := cl.command("sacct", "-X", "-n", "-P", "-o", "State,ExitCode,NodeList,SystemComment", "-S",
		"1970-01-01").Output()
	if err != nil {
		return fmt.Errorf("sacct: %w", err)
	}
	got, other := 0, ""
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "COMPLETED") {
			got++
		} else if other == "" {
			other = "; the first that did not: " + strings.TrimSpace(line)
		}
	}
	if got != n {
		return fmt.Errorf("%d of %d jobs completed%s", got, n, other)
	}
	return nil
}

func (s *suite) squeue(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	if _, err := cl.load(ctx, s.queue, 32, 0, hold); err != nil {
		return err
	}
	var times []time.Duration
	for range 7 {
		cmd := cl.command("squeue")
		cmd.Stdout = nil
		began := time.Now()
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("squeue: %w", err)
		}
		times = append(times, time.Since(began))
	}
	s.add(row{
		what: fmt.Sprintf("squeue over %d pending, p50", s.queue), value: ms(pct(times, 50)),
		budget: "⅓ of Slurm's",
	})
	return nil
}

// restart kills the server with many jobs pending and measures until it serves again, and what a job takes in memory.
func (s *suite) restart(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	empty, _, err := cl.bounce(ctx)
	if err != nil {
		return err
	}
	if _, err := cl.load(ctx, s.many, 32, 0, hold); err != nil {
		return err
	}
	full, took, err := cl.bounce(ctx)
	if err != nil {
		return err
	}
	s.add(row{what: fmt.Sprintf("restart with %d pending, killed to serving", s.many), value: ms(took), budget: "2 s"})
	s.add(row{
		what: "  memory a pending job (resident, server)", value: fmt.Sprintf("%d B", (full-empty)/int64(s.many)),
		budget: "2 KiB",
	})
	return nil
}

// bounce kills the server and starts it again on the same folder; it returns its memory and the time to its first
// answer with all jobs there.
func (cl *cluster) bounce(ctx context.Context) (mem int64, took time.Duration, err error) {
	pid, err := cl.serverPID()
	if err != nil {
		return 0, 0, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, 0, err
	}
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
	began := time.Now()
	done := make(chan error, 1)
	go func() { done <- cl.start(ctx) }()
	for { // the API answers before the nodes are back; that is when it serves
		c, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = cl.c.Cluster(c)
		cancel()
		if err == nil {
			break
		}
		if time.Since(began) > time.Minute {
			return 0, 0, fmt.Errorf("the server did not come back: %w", err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	took = time.Since(began)
	if err := <-done; err != nil {
		return 0, 0, err
	}
	if pid, err = cl.serverPID(); err != nil {
		return 0, 0, err
	}
	return rss(pid), took, nil
}

// idle is the CPU everything takes while nothing happens.
func (s *suite) idle(ctx context.Context) error {
	cl, err := s.up(ctx, nil, "--nodes", "8", "--cpus", "4", "--memory", "4G")
	if err != nil {
		return err
	}
	defer cl.down()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	before := cl.cpu()
	const d = 10 * time.Second
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return ctx.Err()
	}
	s.add(row{
		what:  "idle, server and 8 nodes, CPU",
		value: fmt.Sprintf("%.2f %% of a core", cl.cpu().sub(before).total().Seconds()/d.Seconds()*100),
	})
	var mem int64
	for _, pid := range cl.procs() {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(b), "agent\x00") {
			mem = max(mem, rss(pid))
		}
	}
	s.add(row{what: "  largest idle agent, resident", value: fmt.Sprintf("%.1f MB", float64(mem)/1e6), budget: "20 MB"})
	return nil
}
