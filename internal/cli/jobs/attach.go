package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/attach"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// patience is how long a run may wait before the user is told why.
const patience = 1500 * time.Millisecond

// attachment is a user at a terminal and a run: its output, its ports, its name as an SSH host.
type attachment struct {
	app      *app.App
	client   *client.Client
	project  string
	name     string // of the run, or the job's id
	job      string
	node     int
	forwards []forward
	host     bool        // ssh NAME reaches it while attached
	hold     bool        // it counts how long nobody is connected
	quiet    bool        // no output is shown
	offset   int64       // where the output begins
	at       string      // what the user was last told of its beginning
	midLine  atomic.Bool // what was printed of its output does not end with a line
}

// Write prints output of the run.
func (t *attachment) Write(p []byte) (int, error) {
	if len(p) > 0 {
		t.midLine.Store(p[len(p)-1] != '\n')
	}
	return t.app.Out.Write(p)
}

// note tells the user something, on a line of its own also where the output is on the same screen.
func (t *attachment) note(format string, args ...any) {
	if t.app.Terminal && t.midLine.Swap(false) {
		format = "\n" + format
	}
	t.app.Note(format, args...)
}

// run follows a run's output to its end and gives the job's own exit status. Meanwhile its ports are forwarded.
func (t *attachment) run(ctx context.Context) error {
	beside, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { t.progress(beside) })
	wg.Go(func() { t.connect(beside) })
	out := io.Writer(t)
	if t.quiet {
		out = io.Discard
	}
	follow := t.runJob
	tasks, err := tasksNow(ctx, t.client, t.job)
	if err == nil && tasks != nil {
		follow = t.runArray
	}
	code, text, err := follow(ctx, out)
	stop()
	wg.Wait()
	if errors.Is(ctx.Err(), context.Canceled) {
		return t.interrupted()
	}
	if err != nil {
		return fmt.Errorf("cannot follow run %s, which continues (`bireme logs -f %s` follows it again): %w", t.name,
			t.name, err)
	}
	t.note("run %s: %s", t.name, text)
	if code != 0 {
		return &app.StatusError{Code: code}
	}
	return nil
}

// connect is what is there beside the output: the name for ssh, and the connection.
func (t *attachment) connect(ctx context.Context) {
	s := &sshOptions{app: t.app, project: t.project, node: t.node, args: []string{t.name}}
	if t.host {
		t.editor(ctx)
		defer t.offer(s)()
	}
	if len(t.forwards) == 0 && !t.hold {
		<-ctx.Done()
		return
	}
	for _, f := range t.forwards {
		t.note("%s", f)
	}
	tunnel := &tunnel{app: t.app, client: t.client, job: t.job, name: t.name, ssh: s, forwards: t.forwards}
	tunnel.run(ctx)
	<-ctx.Done()
}

// What is said of the run as a host of ssh, the last before it can be used.
const (
	connectBy  = "to connect by SSH: ssh "
	connectNot = "it is no host of ssh"
)

// offer makes the run a host of the user's ssh, until the function that it gives is called.
func (t *attachment) offer(s *sshOptions) (withdraw func()) {
	self, err := os.Executable()
	var conf *sshConfig
	if err == nil {
		conf, err = newSSHConfig()
	}
	if err == nil {
		err = conf.add(s.lines(self))
	}
	if err != nil {
		t.note("%s; `bireme ssh %s` works: %v", connectNot, t.name, err)
		return func() {}
	}
	t.note("%s%s", connectBy, attach.Host(t.name, t.node))
	return func() {
		if err := conf.remove(); err != nil {
			t.note("%s is still in the ssh configuration: %v", t.name, err)
		}
	}
}

// editor prints the link that opens a dev environment in its editor on this machine.
func (t *attachment) editor(ctx context.Context) {
	run, err := getRun(ctx, t.client, t.project, t.name)
	if err != nil || t.node >= len(run.Jobs) || run.Jobs[t.node].ConnectionInfo == nil {
		return
	}
	if c := run.Jobs[t.node].ConnectionInfo; c.IDEName != nil && c.AttachedIDEURL != nil {
		t.note("to open it in %s: %s", *c.IDEName, *c.AttachedIDEURL)
	}
}

// interrupted is Ctrl-C while attached: the run continues unless the user says otherwise.
func (t *attachment) interrupted() error {
	if t.app.Terminal && t.app.Ask("\nStop run %s?", t.name) {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		stop := &stopOptions{app: t.app, project: t.project}
		if err := stop.one(ctx, t.client, t.name); err != nil {
			return err
		}
		t.note("run %s is being stopped", t.name)
	} else {
		t.note("run %s continues; `bireme logs -f %s` follows it, `bireme stop %s` stops it", t.name, t.name, t.name)
	}
	return &app.StatusError{Code: app.ExitInterrupted}
}

// followLogs copies a job's output to w from an offset until the job has ended and all of it has been written. A stream
// that breaks is taken up where it broke, so nothing is lost or printed twice; it gives up after a minute without an
// answer. Each attempt of a job has a log of its own: when a job is requeued, the next is followed from its beginning.
func followLogs(ctx context.Context, c *client.Client, to io.Writer, job string, attempt int32, offset int64,
	rank int,
) error {
	w, offset := rankWriter(to, rank, offset)
	err := followRaw(ctx, c, w, job, attempt, offset)
	return errors.Join(err, w.Close())
}

// rankWriter writes what one rank, or all, wrote in the log of several nodes, which is to be read from an offset.
func rankWriter(w io.Writer, rank int, offset int64) (out *ranklog.Writer, from int64) {
	skip := int64(0)
	if rank != ranklog.All {
		offset, skip = ranklog.Begin(offset)
	}
	return ranklog.NewWriter(w, ranklog.NewFilter(rank, skip)), offset
}

// followRaw is followLogs with the marks that say whose output is what.
func followRaw(ctx context.Context, c *client.Client, w io.Writer, job string, attempt int32, offset int64) error {
	const giveUp = time.Minute
	var silent time.Duration
	pause := 50 * time.Millisecond
	for {
		n, err := copyLogs(ctx, c, w, job, offset, true)
		if offset += n; n > 0 {
			silent, pause = 0, 50*time.Millisecond
		}
		var sink *sinkError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &sink):
			return sink.error
		case err != nil && core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.NotFound &&
			core.CodeOf(err) != core.Exhausted:
			return err
		}
		j, jobErr := oneJob(ctx, c, job)
		if jobErr == nil && j.Attempt > attempt {
			attempt, offset = j.Attempt, 0
			continue
		}
		switch {
		case jobErr == nil && j.State.Final() && !j.Flags.Has(core.Requeueing) && err == nil && n == 0:
			return nil // ended, and a stream opened afterwards or at its end had nothing more
		case jobErr == nil && j.State.Final() && core.CodeOf(err) == core.NotFound:
			return nil // ended without ever writing
		case jobErr != nil && core.CodeOf(jobErr) != core.Unavailable && core.CodeOf(jobErr) != core.Exhausted:
			return jobErr
		}
		if err != nil || jobErr != nil {
			if silent >= giveUp {
				return errors.Join(err, jobErr)
			}
		}
		if n > 0 {
			continue
		}
		if err := app.Wait(ctx, pause); err != nil {
			return err
		}
		silent, pause = silent+pause, min(2*pause, 2*time.Second)
	}
}

// sinkError is a failure of where output goes, as against where it comes from.
type sinkError struct{ error }

// copyLogs copies what one stream gives and tells how far it came.
func copyLogs(ctx context.Context, c *client.Client, w io.Writer, job string, offset int64, follow bool) (
	int64, error,
) {
	return copyLog(ctx, c, w, job, client.LogQuery{Offset: offset, Follow: follow})
}

// copyLog is copyLogs of any attempt.
func copyLog(ctx context.Context, c *client.Client, w io.Writer, job string, q client.LogQuery) (int64, error) {
	offset := q.Offset
	r, at, err := c.Logs(ctx, job, q)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	skipped := max(0, at-offset)
	buf := make([]byte, 32<<10)
	var n int64
	for {
		got, err := r.Read(buf)
		if got > 0 {
			if _, werr := w.Write(buf[:got]); werr != nil {
				return skipped + n, &sinkError{werr}
			}
			n += int64(got)
		}
		switch {
		case errors.Is(err, io.EOF):
			return skipped + n, nil
		case err != nil:
			return skipped + n, &core.Error{Code: core.Unavailable, Message: "the log stream broke", Err: err}
		}
	}
}

// ownExit is how the job's program ended; nothing where it did not end by itself but has Slurm's mark for that.
func ownExit(j *client.Job) core.Exit {
	if j.Exit == core.ExitOOM && j.State == core.OutOfMemory || j.Exit == core.ExitLaunch &&
		j.Reason == core.ReasonLaunchFailure {
		return core.Exit{}
	}
	return j.Exit
}

// jobExit is the status a command that stands for the job ends with: the job's own, 128 plus its signal, or 1 for an
// end that has neither (a time limit, a lost node, no memory, no image).
func jobExit(j *client.Job) int {
	own := ownExit(j)
	switch {
	case own.Signal != 0:
		return 128 + int(own.Signal)
	case own.Code != 0:
		return int(own.Code)
	case j.State != core.Completed:
		return app.ExitFailed
	}
	return app.ExitOK
}

// ending words how a job ended.
func ending(j *client.Job) string {
	text := lower(j.State)
	own := ownExit(j)
	switch {
	case own.Signal != 0:
		text += fmt.Sprintf(", signal %d", own.Signal)
	case own.Code != 0:
		text += fmt.Sprintf(", exit status %d", own.Code)
	}
	if j.Message != "" {
		text += ": " + j.Message
	}
	return text
}
