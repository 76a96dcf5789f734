package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/test/engine"
)

// The sizes of the rows about dstack's configurations.
const (
	dstackRounds = 20
	stockRounds  = 5
	waitingRuns  = 350
	waitingFor   = 20 * time.Second // how long the server is watched with them
)

// dstackVersion is the release of the stock CLI and server, and dstackHome where scripts/prereqs.sh puts the former.
const dstackVersion = "0.22.5"

func dstackHome() string { return envOr("BIREME_DSTACK", "/opt/bireme-test") }

// dstack measures dstack's configurations: by the native CLI and the stock one in containers, with many active and
// waiting runs, and their logs; then the same of a real dstack server.
func (s *suite) dstack(ctx context.Context) error {
	if os.Geteuid() != 0 {
		progress("dstack is left out: only root starts an engine")
		return nil
	}
	for _, part := range []struct {
		name string
		f    func(context.Context) error
	}{
		{"apply", s.dstackApply}, {"many", s.dstackMany}, {"logs", s.dstackLogs}, {"peer", s.dstackPeer},
	} {
		if len(s.parts) > 0 && !contains(s.parts, part.name) {
			continue
		}
		progress("dstack: %s", part.name)
		if err := part.f(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// dstackApply is what a person waits for who applies and stops runs in containers.
func (s *suite) dstackApply(ctx context.Context) error {
	docker, err := engine.Start(ctx)
	if err != nil {
		return err
	}
	defer docker.Stop() // what it leaves is below /tmp
	files, err := engine.BusyBox()
	if err != nil {
		return err
	}
	if err := docker.Import("box:1", files); err != nil {
		return err
	}
	api, err1 := freeAddr()
	door, err2 := freeAddr()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	cl, err := s.up(ctx, nil, "--cpus", "4", "--memory", "4G", "--engine", docker.Socket, "--set", "dstack.listen="+api,
		"--set", "ssh.listen="+door)
	if err != nil {
		return err
	}
	defer cl.down()
	for _, args := range [][]string{
		{"projects", "add", "main", "--runtime", "container"}, {"projects", "member", "main", "root", "--role", "admin"},
	} {
		if _, err := cl.bireme(args...); err != nil {
			return err
		}
	}
	if err := s.nativeRuns(ctx, cl); err != nil {
		return err
	}
	if err := s.stockRuns(ctx, cl, "http://"+api); err != nil {
		return err
	}
	return s.waiting(ctx, cl)
}

// bireme runs the native CLI.
func (cl *cluster) bireme(args ...string) (string, error) {
	cmd := cl.command("bireme", args...)
	cmd.Path = filepath.Join(cl.bin, "bireme")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("bireme %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// file writes a file of the cluster's folder.
func (cl *cluster) file(name, text string) (string, error) {
	path := filepath.Join(cl.dir, name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

const boxTask = "type: task\nimage: box:1\nresources: {cpu: 1, memory: 64MB.., disk: 0..}\n"

// untilRun waits until a run of the project has one of some states. It looks every 2 ms.
func (cl *cluster) untilRun(ctx context.Context, name string, states ...string) (*client.Run, error) {
	seen := ""
	for range 30_000 {
		list, err := cl.c.Runs(ctx, "main", name)
		if err != nil {
			return nil, err
		}
		if n := len(list.Runs); n > 0 {
			if run := &list.Runs[n-1]; contains(states, run.State) {
				return run, nil
			} else if seen = run.State; contains([]string{"failed", "done", "terminated"}, seen) {
				break
			}
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, fmt.Errorf("run %s is %q, never one of %q", name, seen, states)
}

func contains(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// nativeRuns times apply and stop by the native CLI, one run at a time.
func (s *suite) nativeRuns(ctx context.Context, cl *cluster) error {
	long, err1 := cl.file("long.yml", boxTask+"commands: [echo up, sleep 1000]\n")
	short, err2 := cl.file("short.yml", boxTask+"commands: ['true']\n")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var state, running, done, stopped []time.Duration
	for i := range dstackRounds {
		name := fmt.Sprintf("long-%d", i)
		began := time.Now()
		if _, err := cl.bireme("apply", "-y", "-d", "--project", "main", "-f", long, "-n", name); err != nil {
			return err
		}
		run, err := cl.untilRun(ctx, name, "running")
		if err != nil {
			return err
		}
		state = append(state, time.Since(began))
		if err := cl.firstOutput(ctx, run); err != nil {
			return err
		}
		running = append(running, time.Since(began))
		began = time.Now()
		if _, err := cl.bireme("stop", "-y", "--project", "main", name); err != nil {
			return err
		}
		if _, err := cl.untilRun(ctx, name, "terminated"); err != nil {
			return err
		}
		stopped = append(stopped, time.Since(began))
		began = time.Now()
		name = fmt.Sprintf("short-%d", i)
		if _, err := cl.bireme("apply", "-y", "--project", "main", "-f", short, "-n", name); err != nil {
			return err
		}
		done = append(done, time.Since(began))
	}
	for _, x := range []struct {
		what  string
		times []time.Duration
		floor string
	}{
		{"`bireme apply` → its container's first output is in the log, image present, p50 / max", running, "0.6 s p50"},
		{"  → the server says running", state, "0.6 s p50"},
		{"  → done and the command ends (`true`)", done, "1 s"},
		{"  `bireme stop` → stopped (`sleep 1000`)", stopped, "1 s"},
	} {
		s.add(row{what: x.what, value: ms(pct(x.times, 50)) + " / " + ms(pct(x.times, 100)), budget: x.floor})
	}
	return nil
}

// firstOutput waits until a run has written something: then its container runs.
func (cl *cluster) firstOutput(ctx context.Context, run *client.Run) error {
	r, _, err := cl.c.Logs(ctx, fmt.Sprint(run.Jobs[0]), client.LogQuery{Follow: true})
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.ReadFull(r, make([]byte, 1))
	return err
}

// stock is the stock CLI with a home of its own.
type stock struct{ cli, home string }

func newStock(dir, url, token string) (*stock, error) {
	c := &stock{cli: filepath.Join(dstackHome(), "dstack-"+dstackVersion, "bin", "dstack"), home: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_, err := c.run("project", "add", "--name", "main", "--url", url, "--token", token, "-y")
	return c, err
}

func (c *stock) run(args ...string) (string, error) {
	cmd := exec.Command(c.cli, args...)
	cmd.Dir = c.home
	cmd.Env = []string{
		"HOME=" + c.home, "PATH=" + os.Getenv("PATH"), "COLUMNS=180", "LANG=C.UTF-8", "USER=root",
		"DSTACK_CLI_LOG_LEVEL=ERROR",
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", fmt.Errorf("dstack %s: %w: %s", strings.Join(args, " "), err, out.String())
	}
	return out.String(), nil
}

// stockRuns times the stock CLI. The time of a submission is the server's: what the CLI does before is its own.
func (s *suite) stockRuns(ctx context.Context, cl *cluster, url string) error {
	text, err := cl.bireme("token", "create", "--for", "dstack", "--scope", "read,submit,admin", "--json")
	if err != nil {
		return err
	}
	var made client.NewTokenMade
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		return err
	}
	cli, err := newStock(filepath.Join(cl.dir, "home"), url, made.Secret)
	if err != nil {
		s.add(row{what: "stock CLI", value: fmt.Sprintf("not measured: %v", err)})
		return nil
	}
	var state, running, wall, attached, ps []time.Duration
	for i := range stockRounds {
		name := fmt.Sprintf("stock-%d", i)
		long, err1 := cl.file("home/long.yml", boxTask+"name: "+name+"\ncommands: [echo up, sleep 1000]\n")
		short, err2 := cl.file("home/short.yml", boxTask+"name: "+name+"-s\ncommands: ['true']\n")
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		ended := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := cli.run("apply", "-y", "-d", "-f", filepath.Base(long))
			wall = append(wall, time.Since(began))
			ended <- err
		}()
		run, err := cl.untilRun(ctx, name, "running")
		if err != nil {
			return errors.Join(err, <-ended)
		}
		state = append(state, time.Since(run.Created.Go()))
		if err := cl.firstOutput(ctx, run); err != nil {
			return err
		}
		running = append(running, time.Since(run.Created.Go()))
		if err := <-ended; err != nil {
			return err
		}
		for _, x := range []struct {
			args  []string
			times *[]time.Duration
		}{
			{[]string{"ps"}, &ps},
			{[]string{"stop", "-y", name}, nil},
			{[]string{"apply", "-y", "-f", filepath.Base(short)}, &attached},
		} {
			began := time.Now()
			if _, err := cli.run(x.args...); err != nil {
				return err
			}
			if x.times != nil {
				*x.times = append(*x.times, time.Since(began))
			}
		}
	}
	s.add(row{
		what:  "stock `dstack apply -d`: submit request → its container's first output is in the log, p50 / max",
		value: ms(pct(running, 50)) + " / " + ms(pct(running, 100)), budget: "0.5 s",
	})
	s.add(row{
		what:  "  → the server says running",
		value: ms(pct(state, 50)) + " / " + ms(pct(state, 100)), budget: "0.5 s",
	})
	s.add(row{
		what:  "  wall time of `apply -d`, `ps`, attached `apply` to its end, p50",
		value: ms(pct(wall, 50)) + ", " + ms(pct(ps, 50)) + ", " + ms(pct(attached, 50)),
	})
	return nil
}

// waiting is what runs cost that wait while nobody calls: one has all processors.
func (s *suite) waiting(ctx context.Context, cl *cluster) error {
	full, err1 := cl.file("full.yml", "type: task\nname: full\nimage: box:1\ncommands: [sleep 1000]\n"+
		"resources: {cpu: 4, memory: 64MB.., disk: 0..}\n")
	next, err2 := cl.file("next.yml", boxTask+"commands: [sleep 1000]\n")
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if _, err := cl.bireme("apply", "-y", "-d", "--project", "main", "-f", full); err != nil {
		return err
	}
	if _, err := cl.untilRun(ctx, "full", "running"); err != nil {
		return err
	}
	began := time.Now()
	for i := range waitingRuns {
		name := fmt.Sprintf("next-%d", i)
		if _, err := cl.bireme("apply", "-y", "-d", "--project", "main", "-f", next, "-n", name); err != nil {
			return err
		}
	}
	took := time.Since(began)
	pid, err := cl.serverPID()
	if err != nil {
		return err
	}
	if err := rest(ctx, 2*time.Second); err != nil {
		return err
	}
	before, _ := procCPU(pid)
	if err := rest(ctx, waitingFor); err != nil {
		return err
	}
	after, _ := procCPU(pid)
	s.add(row{
		what: fmt.Sprintf("%d waiting runs, nobody calls: CPU of the server", waitingRuns),
		value: fmt.Sprintf("%.2f %% of a core; submitted one by one by `bireme apply -d`, %.0f ms each",
			(after-before).Seconds()/waitingFor.Seconds()*100, took.Seconds()*1e3/waitingRuns), budget: "about 0",
	})
	return nil
}
