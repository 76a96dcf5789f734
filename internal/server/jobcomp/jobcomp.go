// Package jobcomp writes a line for each job that has ended, as Slurm's jobcomp/filetxt does.
package jobcomp

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/slurm/report"
)

// maxWaiting is how many jobs may wait for a slow disk; more are left out, and the log says so.
const maxWaiting = 100_000

// Writer appends lines to a file. Publish learns of jobs, Run writes.
type Writer struct {
	cfg   func() *config.Config
	log   *slog.Logger
	queue chan report.Completed
}

// New makes a writer; cfg is asked for each job, so that settings may change.
func New(cfg func() *config.Config, log *slog.Logger) *Writer {
	return &Writer{cfg: cfg, log: log, queue: make(chan report.Completed, maxWaiting)}
}

// Publish takes what a transaction changed.
func (w *Writer) Publish(p *engine.Published) {
	cfg := w.cfg()
	if p.Reloaded || cfg.Accounting.CompletedFile == "" {
		return
	}
	var ended map[core.JobID]bool
	for i := range p.Changes.Events {
		if e := &p.Changes.Events[i]; e.Kind == core.JobEnded {
			if ended == nil {
				ended = map[core.JobID]bool{}
			}
			ended[e.Job] = true
		}
	}
	if ended == nil {
		return
	}
	for _, j := range p.Changes.Jobs {
		if !ended[j.ID] || !j.State.Final() {
			continue
		}
		delete(ended, j.ID) // once
		c := report.Completed{Job: &client.Job{Job: *j, Weights: weights(cfg, j)}, Cluster: cfg.Cluster}
		for _, st := range p.Snapshot.Steps(j.ID) {
			if st.ID >= 0 {
				c.Derived = report.Worse(c.Derived, st.Exit)
			}
		}
		select {
		case w.queue <- c:
		default:
			w.log.Warn("a job is not in accounting.completed_file: too many wait", "job", j.ID)
		}
	}
}

// weights are what the resources of a job's partition cost.
func weights(cfg *config.Config, j *core.Job) string {
	if j.Alloc == nil {
		return ""
	}
	for i := range cfg.Partitions {
		if cfg.Partitions[i].Name == string(j.Alloc.Partition) {
			return cfg.Partitions[i].BillingWeights
		}
	}
	return ""
}

// Run writes until ctx ends, and then what still waits.
func (w *Writer) Run(ctx context.Context) error {
	for {
		select {
		case c := <-w.queue:
			w.write(&c)
		case <-ctx.Done():
			for len(w.queue) > 0 {
				c := <-w.queue
				w.write(&c)
			}
			return nil
		}
	}
}

// write appends the line of a job and of those that wait with it. The file is opened each time: log rotation moves it
// away.
func (w *Writer) write(c *report.Completed) {
	file := w.cfg().Accounting.CompletedFile
	if file == "" {
		return
	}
	var b strings.Builder
	for {
		name(c)
		b.WriteString(c.Line())
		b.WriteByte('\n')
		if len(w.queue) == 0 || b.Len() > 1<<20 {
			break
		}
		next := <-w.queue
		c = &next
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o640)
	if err == nil {
		_, err = f.WriteString(b.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		w.log.Warn("accounting.completed_file was not written", "err", err)
	}
}

// name looks up the names of a job's user and group.
func name(c *report.Completed) {
	s := c.Job.Spec
	c.User, c.Group = string(s.User), ""
	if u, err := account.ByUID(s.UID); err == nil {
		c.User = u.Name
	}
	if g, err := account.GroupByGID(s.GID); err == nil {
		c.Group = g.Name
	}
}
