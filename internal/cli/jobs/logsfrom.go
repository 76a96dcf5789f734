package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// checkReplica refuses replicas that there are none of: only services have several.
func checkReplica(n int) error {
	if n != 0 {
		return app.Usagef("--replica %d: a task or dev environment has one replica, 0", n)
	}
	return nil
}

// begin is the offset at which the output that is wanted begins: a time, or the last lines.
func (o *logsOptions) begin(ctx context.Context, c *client.Client, job string) (int64, error) {
	from := o.offset
	if o.since != "" {
		at, err := app.Since(o.since, o.app.Now())
		if err != nil {
			return 0, err
		}
		if from, err = o.offsetAt(ctx, c, job, at); err != nil {
			return 0, err
		}
	}
	if o.tail == 0 {
		return from, nil
	}
	last := &lastLines{keep: o.tail}
	if o.rank != ranklog.All {
		return o.beginRank(ctx, c, job, from, last)
	}
	n, err := copyLogs(ctx, c, last, job, from, false)
	if core.CodeOf(err) == core.NotFound { // it has written nothing
		return from, nil
	}
	return from + n - int64(len(last.text())), err
}

// beginRank prints the last lines of one node and gives where the log goes on.
func (o *logsOptions) beginRank(ctx context.Context, c *client.Client, job string, from int64, last *lastLines) (
	int64, error,
) {
	w, at := rankWriter(last, o.rank, from)
	n, err := copyLogs(ctx, c, w, job, at, false)
	if core.CodeOf(err) == core.NotFound {
		return from, nil
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		_, err = o.app.Out.Write(last.text())
	}
	return at + n, err
}

// earlier prints what an attempt wrote.
func (o *logsOptions) earlier(ctx context.Context, c *client.Client, job string) error {
	if o.follow || o.since != "" || o.tail > 0 || o.offset != 0 {
		return app.Usagef("--attempt prints all that an attempt wrote; leave out -f, --since, --tail and --since-offset")
	}
	job, err := o.task(ctx, c, job)
	if err != nil {
		return err
	}
	j, err := oneJob(ctx, c, job)
	if err != nil {
		return err
	}
	if o.attempt < 1 || o.attempt > j.Attempt {
		return app.Usagef("--attempt %d: job %s has had %s", o.attempt, job, app.Plural(int(j.Attempt), "attempt"))
	}
	out, from := rankWriter(o.app.Out, o.rank, 0)
	_, err = copyLog(ctx, c, out, job, client.LogQuery{Offset: from, Attempt: o.attempt})
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	var sink *sinkError
	if errors.As(err, &sink) {
		return sink.error
	}
	if core.CodeOf(err) == core.NotFound { // it wrote nothing
		return nil
	}
	return err
}

// task is the task of an array that --job names; of any other job the job itself.
func (o *logsOptions) task(ctx context.Context, c *client.Client, job string) (string, error) {
	if o.rank == ranklog.All || strings.Contains(job, "_") {
		return job, nil
	}
	tasks, err := tasksNow(ctx, c, job)
	if err != nil || len(tasks) == 0 {
		return job, err
	}
	for i := range tasks {
		a := tasks[i].Array
		if a.Tasks.Empty() && int(a.Task) == o.rank || a.Tasks.Contains(o.rank) {
			task := fmt.Sprintf("%s_%d", job, o.rank)
			o.rank = ranklog.All
			return task, nil
		}
	}
	return "", app.Usagef("--job %d: the array %s has no such task", o.rank, o.ref)
}

// checkRank refuses a node that the run has not.
func (o *logsOptions) checkRank(ctx context.Context, c *client.Client, job string) error {
	if o.rank == ranklog.All {
		return nil
	}
	j, err := oneJob(ctx, c, job)
	if err != nil || j.Spec == nil || o.rank == 0 {
		return err
	}
	if n := max(1, int(j.Spec.Shape.NodesMin)); j.Spec.More().Het == nil && (o.rank < 0 || o.rank >= n) {
		return app.Usagef("--job %d: run %s has the jobs 0 to %d", o.rank, o.ref, n-1)
	}
	return nil
}

// offsetAt is where the output of a moment begins.
func (o *logsOptions) offsetAt(ctx context.Context, c *client.Client, job string, at time.Time) (int64, error) {
	page, err := o.poll(ctx, c, job, map[string]any{"start_time": wire.Time(core.At(at)), "limit": 1, "bireme_raw": true})
	if err != nil {
		return 0, err
	}
	found := int64(0)
	for _, l := range page.Logs {
		found += int64(len(l.Message))
	}
	if page.NextToken != nil {
		next, err := strconv.ParseInt(*page.NextToken, 10, 64)
		return max(0, next-found), err
	}
	end, err := copyLogs(ctx, c, io.Discard, job, 0, false) // nothing follows: what was found is the end
	if core.CodeOf(err) == core.NotFound {
		return 0, nil
	}
	return max(0, end-found), err
}

// poll asks for a page of a run's output by dstack's API.
func (o *logsOptions) poll(ctx context.Context, c *client.Client, job string, in map[string]any) (
	*wire.LogPage, error,
) {
	project, err := app.Project(ctx, c, o.project)
	if err != nil {
		return nil, err
	}
	name := o.ref
	if isJobID(name) {
		name = "job-" + job
		if j, err := oneJob(ctx, c, job); err == nil && j.Spec != nil && j.Spec.Run != "" {
			name, project = j.Spec.Run, string(j.Spec.Project)
		}
	}
	run, err := getRun(ctx, c, project, name)
	if err != nil {
		return nil, err
	}
	if run.LatestJobSubmission == nil {
		return nil, core.Errorf(core.NotFound, "run %s has no jobs", name)
	}
	in["run_name"], in["job_submission_id"] = name, run.LatestJobSubmission.ID
	page := new(wire.LogPage)
	return page, client.Dstack{Client: c, Project: project}.Post(ctx, "logs/poll", in, page)
}

// told prints what became of the run.
func (o *logsOptions) told(ctx context.Context, c *client.Client, job string) error {
	page, err := o.poll(ctx, c, job, map[string]any{"diagnose": true, "limit": 1000})
	if err != nil {
		return err
	}
	for _, l := range page.Logs {
		if _, err := o.app.Out.Write(l.Message); err != nil {
			return err
		}
	}
	return nil
}

// lastLines keeps the last lines of what is written to it.
type lastLines struct {
	keep int
	buf  []byte
}

// Write keeps p, and drops what is not among the last lines from time to time.
func (l *lastLines) Write(p []byte) (int, error) {
	l.buf = append(l.buf, p...)
	if len(l.buf) > 1<<20 {
		l.buf = slices.Clone(l.text())
	}
	return len(p), nil
}

// text is the last lines; one without an end counts.
func (l *lastLines) text() []byte {
	at := len(l.buf)
	if at > 0 && l.buf[at-1] == '\n' {
		at--
	}
	for n := 0; n < l.keep; n++ {
		if at = bytes.LastIndexByte(l.buf[:at], '\n'); at < 0 {
			return l.buf
		}
	}
	return l.buf[at+1:]
}
