package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// bigArray does to arrays of a million tasks what people do to jobs. An array is one record, so each of it takes what
// it takes for a job, and squeue shows it in one line.
func (s *suite) bigArray(ctx context.Context) error {
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	hold, release := true, false
	limit := core.Seconds(7200)
	var id string
	ops := []struct {
		name string
		do   func() error
	}{
		{"submit", nil},
		{"hold", func() error { return cl.c.UpdateJob(ctx, id, &client.Update{Hold: &hold}) }},
		{"release", func() error { return cl.c.UpdateJob(ctx, id, &client.Update{Hold: &release}) }},
		{"update", func() error { return cl.c.UpdateJob(ctx, id, &client.Update{TimeLimit: &limit}) }},
		{"cancel a task", func() error { return cl.cancel(ctx, id+"_500000") }},
		{"cancel half", func() error { return cl.cancel(ctx, id+"_[250000-749999]") }},
		{"cancel", func() error { return cl.cancel(ctx, id) }},
	}
	times := map[string][]time.Duration{}
	for i := range int64(20) {
		sub := client.Submit{Script: scriptOf(cl.dir, i), Env: envOf(i), Key: client.NewKey()}
		sub.Spec.Name, sub.Spec.IO.WorkDir, sub.Spec.Shape.Tasks, sub.Spec.Array = "array", cl.dir, 1, "0-999999"
		sub.Spec.Begin = core.At(time.Now().Add(24 * time.Hour)) // so that none of it starts
		for _, op := range ops {
			began := time.Now()
			if op.do == nil {
				made, err := cl.c.Submit(ctx, &sub)
				if err != nil {
					return err
				}
				id = fmt.Sprint(made.ID)
			} else if err := op.do(); err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
			times[op.name] = append(times[op.name], time.Since(began))
			if i == 0 && op.name == "release" {
				out, err := cl.command("squeue", "-h").Output()
				if err != nil {
					return fmt.Errorf("squeue: %w", err)
				}
				if n := strings.Count(string(out), "\n"); n != 1 {
					return fmt.Errorf("squeue shows an array in %d lines: %s", n, out)
				}
			}
		}
	}
	for _, op := range ops {
		t := times[op.name]
		s.add(row{
			what:  "array of 1,000,000 tasks: " + op.name + ", p50 / max",
			value: fmt.Sprintf("%s / %s", ms(pct(t, 50)), ms(pct(t, 100))), budget: "10 ms",
		})
	}
	return nil
}

func (cl *cluster) cancel(ctx context.Context, id string) error {
	out, err := cl.c.Cancel(ctx, &client.Cancel{IDs: []string{id}})
	if err != nil {
		return err
	}
	for _, r := range out.Results {
		if r.Error != nil {
			return r.Error
		}
	}
	return nil
}
