package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/wire"
)

// activeRuns is how many run at once, on how many nodes.
const (
	activeRuns  = 1500
	activeNodes = 150
)

// dstackMany measures a server with many active runs on fake agents, each of which beats and tells what its jobs use
// every 10 s, as real ones do.
func (s *suite) dstackMany(ctx context.Context) error {
	dir, err := os.MkdirTemp(scratch, "runs-")
	if err != nil {
		return err
	}
	bin, err := filepath.Abs(s.bin)
	if err != nil {
		return err
	}
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	server := exec.Command(filepath.Join(bin, "biremed"), "server", "--dir", filepath.Join(dir, "srv"), "--listen", "",
		"--agent-listen", addr)
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	sock := filepath.Join(dir, "srv", "bireme.sock")
	c, err := client.New(client.Settings{Servers: []string{"unix:" + sock}, Timeout: time.Minute})
	if err != nil {
		return err
	}
	if err := untilServing(ctx, c); err != nil {
		return err
	}
	list, pool, err := joinFakes(ctx, c, activeNodes)
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	for _, a := range list {
		a.holds = true
	}
	drum, stop := context.WithCancel(ctx)
	var beating sync.WaitGroup
	defer func() {
		stop()
		beating.Wait()
		for _, a := range list {
			if c := a.conn.Load(); c != nil {
				c.Close()
			}
		}
	}()
	beating.Go(func() { beatFakes(drum, list) })
	if err := connectFakes(ctx, list, pool, addr); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	began := time.Now()
	if err := submitRuns(ctx, c, activeRuns); err != nil {
		return err
	}
	for {
		q := client.JobsQuery{}
		q.States = []string{core.Running.String()}
		jobs, err := c.Briefs(ctx, q)
		if err != nil {
			return err
		}
		if len(jobs.Jobs) == activeRuns {
			break
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	took := time.Since(began)
	pid := server.Process.Pid
	if err := rest(ctx, agentBeat); err != nil { // one round that is not counted
		return err
	}
	wait := s.profileSocket(sock, "dstack-many", agentWindow)
	before, _ := procCPU(pid)
	if err := rest(ctx, agentWindow); err != nil {
		return err
	}
	after, _ := procCPU(pid)
	wait()
	s.add(row{
		what:  fmt.Sprintf("%d active runs on %d fake agents: CPU of the server", activeRuns, activeNodes),
		value: fmt.Sprintf("%.3f of a core", (after-before).Seconds()/agentWindow.Seconds()), budget: "0.2",
	})
	s.add(row{
		what:  "  its memory, resident; all submitted and running",
		value: fmt.Sprintf("%d MB; %.1f s", rss(pid)>>20, took.Seconds()), budget: "1 GB",
	})
	return nil
}

// submitRuns submits runs as dstack's API does.
func submitRuns(ctx context.Context, c *client.Client, n int) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			name := fmt.Sprintf("run-%d", i)
			conf, err := config.Read([]byte("type: task\nruntime: process\nname: " + name +
				"\nresources: {cpu: 1, memory: 64MB.., disk: 0..}\ncommands: [sleep 1000]\n"))
			if err != nil {
				return err
			}
			sub, err := (&convert.Spec{Configuration: *conf}).Submit(convert.Options{Name: name, Now: time.Now()})
			if err != nil {
				return err
			}
			_, err = c.Submit(ctx, sub)
			return err
		})
	}
	return g.Wait()
}

// take does what a keeper would for the server: a launch has started, and goes on.
func (a *fakeAgent) take(c *wire.Conn, f wire.Frame) {
	if f.Type != wire.TypeLaunch || !a.holds {
		return
	}
	l, err := wire.DecodeLaunch(f)
	if err != nil {
		return
	}
	a.mu.Lock()
	a.jobs = append(a.jobs, wire.JobUse{Job: l.Key.Job, Attempt: l.Key.Attempt, Mem: 64 << 20})
	a.mu.Unlock()
	_ = c.Send(wire.TypeStarted, wire.Started{Key: l.Key, PID: 1})
}

// sample tells what the jobs use.
func (a *fakeAgent) sample(c *wire.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 {
		return
	}
	for i := range a.jobs {
		a.jobs[i].CPU += 5_000_000
	}
	_ = c.Send(wire.TypeSample, wire.Sample{Jobs: a.jobs})
}
