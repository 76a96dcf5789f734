// Package mail tells people what became of their jobs: as --mail-type asks for it, by a program of the site's.
package mail

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
)

// Config says how mail is sent.
type Config struct {
	Program string // run as PROGRAM -s SUBJECT ADDRESS, with nothing to read; empty: nobody is told anything
	Domain  string // added to addresses that have none
	Cluster string
}

// maxWaiting is how many letters may wait for the program; more are dropped, and the log says so.
const maxWaiting = 10_000

// patience is how long the program may take for one letter.
const patience = time.Minute

// letter is one message.
type letter struct {
	to, subject string
	env         []string
}

// Sender sends mail about jobs. Publish hears of them, Run sends.
type Sender struct {
	cfg   func() Config
	log   *slog.Logger
	queue chan letter

	mu     sync.Mutex
	alarms map[core.JobID][]*time.Timer // at parts of the time limit
	arrays map[core.JobID]*summary      // those of which a task has started or ended
	ends   []*core.Job                  // tasks of arrays that ended in the transaction at hand
	told   map[core.JobID]bool          // that what they wait for cannot happen
}

// New makes a sender; cfg is asked for each letter, so that settings may change.
func New(cfg func() Config, log *slog.Logger) *Sender {
	return &Sender{cfg: cfg, log: log, queue: make(chan letter, maxWaiting), alarms: map[core.JobID][]*time.Timer{}, arrays: map[core.JobID]*summary{}}
}

// Load begins with a state: alarms of jobs that run are set again.
func (s *Sender) Load(snap *state.Snapshot) {
	for j := range snap.Jobs() {
		if j.State == core.Running && j.Spec.More().MailTypes != "" {
			s.setAlarms(j)
		}
	}
}

// Publish takes what a transaction changed.
func (s *Sender) Publish(p *engine.Published) {
	if p.Reloaded {
		s.Load(p.Snapshot)
		return
	}
	var jobs map[core.JobID]*core.Job // few have anybody to tell
	for _, j := range p.Changes.Jobs {
		if j.Spec.More().MailTypes == "" {
			continue
		}
		if jobs == nil {
			jobs = map[core.JobID]*core.Job{}
		}
		jobs[j.ID] = j
		if j.State == core.Pending && j.Reason == core.ReasonDependencyNever {
			s.neverStarts(j)
		}
	}
	if jobs == nil {
		return
	}
	for i := range p.Changes.Events {
		e := &p.Changes.Events[i]
		if j := jobs[e.Job]; j != nil {
			s.happened(e.Kind, j)
		}
	}
	s.overArrays(p.Snapshot)
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	for {
		select {
		case l := <-s.queue:
			if err := s.send(ctx, l); err != nil && ctx.Err() == nil {
				s.log.Warn("mail was not sent", "to", l.to, "subject", l.subject, "err", err)
			}
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			for id := range s.alarms {
				s.stopAlarms(id)
			}
			return nil
		}
	}
}

func (s *Sender) send(ctx context.Context, l letter) error {
	cfg := s.cfg()
	if cfg.Program == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if cfg.Domain != "" && !strings.Contains(l.to, "@") {
		l.to += "@" + cfg.Domain
	}
	c := exec.CommandContext(ctx, cfg.Program, "-s", l.subject, l.to)
	c.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CLUSTER_NAME=" + cfg.Cluster}, l.env...)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) > 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		return errors.New(exit.Error() + ": " + line)
	}
	return err
}

// post puts a letter about a job into the queue.
func (s *Sender) post(j *core.Job, kind, subject string) {
	to := j.Spec.More().MailUser
	if to == "" {
		to = string(j.Spec.User)
	}
	if strings.HasPrefix(to, "-") { // it would be an option of the program
		s.log.Warn("mail was not sent", "job", j.ID, "to", to)
		return
	}
	l := letter{to: to, subject: subject, env: []string{
		"SLURM_JOB_ID=" + strconv.FormatInt(int64(j.ID), 10), "SLURM_JOB_NAME=" + j.Spec.Name, "SLURM_JOB_USER=" + string(j.Spec.User), "SLURM_JOB_MAIL_TYPE=" + kind,
	}}
	select {
	case s.queue <- l:
	default:
		s.log.Warn("mail was not sent: too much waits", "job", j.ID, "to", to)
	}
}
