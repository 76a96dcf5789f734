// Package mail tells people what became of their jobs: as --mail-type asks for it, by a program of the site's.
package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/mailto"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/nice"
	"bireme.dev/bireme/internal/slurm/report"
)

// Config says how mail is sent.
type Config struct {
	Program string // run as PROGRAM -s SUBJECT ADDRESS, with nothing to read; empty: nobody is told anything
	Domain  string // added to addresses that have none
	User    string // whom the program runs as where this process is root; never root itself
	PerHour int64  // messages about the jobs of one user; 0: any number
	Cluster string
}

// maxWaiting is how many messages may wait for the program; more are dropped, and the log says so.
const maxWaiting = 10_000

// sendTimeout is how long the program may take for one message, senders how many messages are sent at once, and
// maxOutput how much of what the program says is looked at.
const (
	sendTimeout = time.Minute
	senders     = 4
	maxOutput   = 4 << 10
)

// message is one mail.
type message struct {
	to, subject string
	env         []string
	gid         uint32 // of the job: its name is looked up when the message is sent
}

// Sender sends mail about jobs. Publish learns of them, Run sends.
type Sender struct {
	cfg   func() Config
	log   *slog.Logger
	queue chan message

	mu              sync.Mutex
	now             *state.Snapshot              // the one that is published; nil: none is
	alarms          map[core.JobID][]*time.Timer // at parts of the time limit
	started         map[core.JobID]core.Time     // when jobs that run began; a requeued one does not say any more
	arrays          map[core.JobID]*summary      // those of which a task has started or ended
	endedTasks      []*core.Job                  // tasks of arrays that ended in the transaction at hand
	neverStartsSent map[core.JobID]bool          // that what they wait for cannot happen
	rates           map[core.UserName]*rate      // messages about each user's jobs
}

// New makes a sender; cfg is asked for each message, so that settings may change.
func New(cfg func() Config, log *slog.Logger) *Sender {
	return &Sender{
		cfg: cfg, log: log, queue: make(chan message, maxWaiting), alarms: map[core.JobID][]*time.Timer{},
		started: map[core.JobID]core.Time{},
		arrays:  map[core.JobID]*summary{}, rates: map[core.UserName]*rate{},
	}
}

// Load begins with a state: alarms of running jobs are set again, and what was known of earlier jobs is forgotten.
func (s *Sender) Load(snap *state.Snapshot) {
	s.mu.Lock()
	for id := range s.alarms {
		s.stopAlarms(id)
	}
	s.arrays, s.endedTasks, s.started = map[core.JobID]*summary{}, nil, map[core.JobID]core.Time{}
	s.mu.Unlock()
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
			s.notifyNeverStarts(j)
		}
	}
	if jobs == nil {
		return
	}
	s.mu.Lock()
	s.now = p.Snapshot
	s.mu.Unlock()
	for i := range p.Changes.Events {
		e := &p.Changes.Events[i]
		if j := jobs[e.Job]; j != nil {
			s.handleEvent(e.Kind, j)
		}
	}
	s.notifyEndedArrays(p.Snapshot)
	s.mu.Lock()
	s.now = nil
	s.mu.Unlock()
}

// Run sends until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for range senders {
		wg.Go(func() { s.work(ctx) })
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.alarms {
		s.stopAlarms(id)
	}
	return nil
}

func (s *Sender) work(ctx context.Context) {
	for {
		select {
		case l := <-s.queue:
			if err := s.send(ctx, l); err != nil && ctx.Err() == nil {
				s.log.Warn("mail was not sent", "to", l.to, "subject", l.subject, "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *Sender) send(ctx context.Context, l message) error {
	cfg := s.cfg()
	if cfg.Program == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	to, err := addresses(l.to, cfg.Domain) // again: the record may be older than the check at submission
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, cfg.Program, "-s", subject(l.subject), to)
	c.Env = append([]string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
		"SLURM_CLUSTER_NAME=" + cfg.Cluster,
	}, slices.Concat(l.env, groupOf(l.gid))...)
	c.Dir, c.WaitDelay = "/", time.Second
	if err := confine(c, cfg.User); err != nil {
		return err
	}
	var said head
	c.Stdout, c.Stderr = &said, &said
	err = nice.Run(c)
	var exit *exec.ExitError
	if errors.As(err, &exit) && said.Len() > 0 {
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return errors.New(exit.Error() + ": " + plain.Cell(line))
	}
	return err
}

// addresses checks whom a message goes to and completes names without a host.
func addresses(list, domain string) (string, error) {
	if err := mailto.Check("", list); err != nil || list == "" {
		return "", fmt.Errorf("%q is not an address", list)
	}
	out := strings.Split(list, ",")
	for i, a := range out {
		if domain != "" && !strings.Contains(a, "@") {
			out[i] = a + "@" + domain
		}
	}
	return strings.Join(out, ","), nil
}

// subject makes a text one header line of a message.
func subject(text string) string {
	const most = 512
	text = plain.Cell(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if left := maxOutput - h.Len(); left > 0 {
		h.Buffer.Write(p[:min(left, len(p))])
	}
	return len(p), nil
}

// derived is the worst exit of a job's numbered steps.
func (s *Sender) derived(id core.JobID) (worst core.Exit) {
	if s.now == nil {
		return worst
	}
	for _, st := range s.now.Steps(id) {
		if st.ID >= 0 {
			worst = report.Worse(worst, st.Exit)
		}
	}
	return worst
}

// enqueue puts a message about a job into the queue.
func (s *Sender) enqueue(j *core.Job, kind, subject string) {
	to := j.Spec.More().MailUser
	if to == "" {
		to = string(j.Spec.User)
	}
	cfg := s.cfg()
	if cfg.Program == "" {
		return
	}
	switch ok, last := s.allow(j.Spec.User, cfg.PerHour, time.Now()); {
	case last:
		s.log.Warn("mail is held back", "user", j.Spec.User, "limit", "limits.mail_per_hour", "value", cfg.PerHour)
		subject = fmt.Sprintf("Slurm mail about your jobs is held back for an hour: limits.mail_per_hour is %d", cfg.PerHour)
	case !ok:
		return
	}
	env := environment(j, kind, s.started[j.ID], s.derived(j.ID))
	l := message{to: to, subject: subject, env: env, gid: j.Spec.GID}
	select {
	case s.queue <- l:
	default:
		s.log.Warn("mail was not sent: too much waits", "job", j.ID, "to", to)
	}
}
