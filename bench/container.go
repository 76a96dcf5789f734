package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/test/engine"
)

// The sizes of the rows about containers.
const (
	containerRounds = 20 // of one run of ours beside one of the engine's own
	containerBlock  = 50 // in a row, four times each
	containerDeaths = 5
)

// containers measures jobs in containers beside `docker run` of the same image on the same engine.
func (s *suite) containers(ctx context.Context) error {
	if os.Geteuid() != 0 {
		progress("containers are left out: only root starts an engine")
		return nil
	}
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
	cl, err := s.up(ctx, nil, "--cpus", "1", "--memory", "4G", "--engine", docker.Socket)
	if err != nil {
		return err
	}
	defer cl.down()
	for _, row := range []func(context.Context, *cluster, *engine.Engine) error{
		s.containerStart, s.containerRate,
		s.containerDeath,
	} {
		if err := row(ctx, cl, docker); err != nil {
			return err
		}
	}
	return nil
}

// plain runs one container by the engine's own tool.
func plain(ctx context.Context, docker *engine.Engine) (time.Duration, error) {
	began := time.Now()
	out, err := exec.CommandContext(ctx, "docker", "-H", "unix://"+docker.Socket, "run", "--rm", "box:1", "/bin/sh",
		"-c", "true").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("docker run: %w: %s", err, out)
	}
	return time.Since(began), nil
}

// containerStart is what one run costs a person who waits for it.
func (s *suite) containerStart(ctx context.Context, cl *cluster, docker *engine.Engine) error {
	file := filepath.Join(cl.dir, "task.yml")
	if err := os.WriteFile(file, []byte("type: task\nimage: box:1\ncommands: ['true']\n"), 0o644); err != nil {
		return err
	}
	var ours, theirs []time.Duration
	for i := range containerRounds {
		d, err := plain(ctx, docker)
		if err != nil {
			return err
		}
		theirs = append(theirs, d)
		cmd := cl.command("bireme", "apply", "-y", "-f", file, "-n", fmt.Sprintf("bench-%d", i))
		cmd.Path = filepath.Join(cl.bin, "bireme")
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("bireme apply: %w: %s", err, out)
		}
		ours = append(ours, time.Since(began))
	}
	a, b := pct(ours, 50), pct(theirs, 50)
	s.add(row{
		what: "`bireme apply` of a container, to its end, p50", value: ms(a), limit: ms(b) + " docker run",
		ratio: ms(a-b) + " more", budget: "150 ms more",
	})
	return nil
}

// submitContainers queues jobs that run one after the other.
func submitContainers(ctx context.Context, cl *cluster, n int, command string) (last core.JobID, err error) {
	for range n {
		sub := &client.Submit{Script: "#!/bin/sh\n" + command + "\n", Key: client.NewKey()}
		sub.Spec.Name, sub.Spec.IO.WorkDir, sub.Spec.IO.Stream = "bench", "/", true
		sub.Spec.Shape.Tasks = 1
		sub.Spec.Extra = &core.Extra{Container: &core.Container{Image: "box:1"}}
		done, err := cl.c.Submit(ctx, sub)
		if err != nil {
			return 0, err
		}
		last = done.ID
	}
	return last, nil
}

// containerRate is how many short containers run in a row, in blocks that take turns.
func (s *suite) containerRate(ctx context.Context, cl *cluster, docker *engine.Engine) error {
	var ours, theirs time.Duration
	for range 4 {
		for range containerBlock {
			d, err := plain(ctx, docker)
			if err != nil {
				return err
			}
			theirs += d
		}
		began := time.Now()
		if _, err := submitContainers(ctx, cl, containerBlock, "true"); err != nil {
			return err
		}
		if err := cl.drained(ctx); err != nil {
			return err
		}
		ours += time.Since(began)
	}
	const n = 4 * containerBlock
	a, b := n/ours.Seconds(), n/theirs.Seconds()
	s.add(row{
		what: fmt.Sprintf("%d short containers in a row, a second", n), value: fmt.Sprintf("%.2f", a),
		limit: fmt.Sprintf("%.2f docker run --rm", b), ratio: fmt.Sprintf("%.2f", a/b), budget: "0.80",
	})
	return nil
}

// containerDeath is how long it takes until the cluster knows that a container was killed behind its back.
func (s *suite) containerDeath(ctx context.Context, cl *cluster, docker *engine.Engine) error {
	var took []time.Duration
	for range containerDeaths {
		id, err := submitContainers(ctx, cl, 1, "sleep 1000")
		if err != nil {
			return err
		}
		name, err := waitContainer(ctx, docker, id)
		if err != nil {
			return err
		}
		if _, err := docker.Call("POST", "/containers/"+name+"/kill"); err != nil {
			return err
		}
		began := time.Now()
		for {
			j, err := cl.c.Job(ctx, fmt.Sprint(id))
			if err != nil {
				return err
			}
			if len(j.Jobs) == 1 && j.Jobs[0].State.Final() {
				break
			}
		}
		took = append(took, time.Since(began))
	}
	s.add(row{what: "container killed behind our back → job has ended, p50 / max", value: ms(pct(took, 50)) + " / " +
		ms(pct(took, 100)), budget: "1 s"})
	return nil
}

// waitContainer gives the id of a job's container once its command runs.
func waitContainer(ctx context.Context, docker *engine.Engine, id core.JobID) (string, error) {
	for ctx.Err() == nil {
		name, err := docker.Find(fmt.Sprintf("%d.1.batch", id))
		if err != nil {
			return "", err
		}
		if name == "" {
			continue
		}
		if top, err := docker.Call("GET", "/containers/"+name+"/top"); err == nil && strings.Contains(top, "sleep") {
			return name, nil
		}
	}
	return "", ctx.Err()
}
