package jobs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// tasksNow are the records of an array; none: the job is no array of several tasks.
func tasksNow(ctx context.Context, c *client.Client, id string) ([]client.Job, error) {
	list, err := c.Job(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks := arrayTasks(id, list.Jobs)
	if len(tasks) == 0 || tasks[0].Array.Count < 2 {
		return nil, nil
	}
	return tasks, nil
}

// ended reports whether a job has ended for good.
func ended(j *client.Job) bool { return j.State.Final() && !j.Flags.Has(core.Requeueing) }

// followArray prints what the tasks of an array write, one task after the other, until all have ended, and returns
// their records.
func followArray(ctx context.Context, c *client.Client, w io.Writer, id string) ([]client.Job, error) {
	printed := map[int32]bool{}
	pause := 100 * time.Millisecond
	for {
		tasks, err := tasksNow(ctx, c, id)
		if err != nil && core.CodeOf(err) != core.Unavailable && core.CodeOf(err) != core.Exhausted {
			return nil, err
		}
		next := slices.IndexFunc(tasks, func(j client.Job) bool { return j.Array.Tasks.Empty() && !printed[j.Array.Task] })
		if next >= 0 {
			j := &tasks[next]
			printed[j.Array.Task] = true
			if _, err := fmt.Fprintf(w, "==> job %s <==\n", taskID(j)); err != nil {
				return nil, err
			}
			if err := followLogs(ctx, c, w, taskID(j), 1, 0, ranklog.All); err != nil {
				return nil, err
			}
			pause = 100 * time.Millisecond
			continue
		}
		if err == nil && !slices.ContainsFunc(tasks, func(j client.Job) bool { return !ended(&j) }) {
			return tasks, nil
		}
		if err := app.Wait(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, 2*time.Second)
	}
}

// decidingTask is the task by which an array is judged: the first that failed, else the first that was stopped; nil:
// all have completed.
func decidingTask(tasks []client.Job) *client.Job {
	var found *client.Job
	rank := func(j *client.Job) int {
		switch j.State {
		case core.Completed:
			return 2
		case core.Cancelled:
			return 1
		default:
			return 0
		}
	}
	for i := range tasks {
		j := &tasks[i]
		if rank(j) < 2 && (found == nil || cmp.Or(rank(j)-rank(found), cmp.Compare(j.End, found.End)) < 0) {
			found = j
		}
	}
	return found
}

// arrayEnding words how the tasks of an array ended.
func arrayEnding(tasks []client.Job) string {
	var states []core.JobState
	count := map[core.JobState]int{}
	for i := range tasks {
		if count[tasks[i].State] == 0 {
			states = append(states, tasks[i].State)
		}
		count[tasks[i].State] += max(1, tasks[i].Array.Tasks.Len())
	}
	slices.Sort(states)
	parts := make([]string, len(states))
	for i, s := range states {
		parts[i] = fmt.Sprintf("%s %s", app.Plural(count[s], "task"), strings.ReplaceAll(lower(s), "_", " "))
	}
	text := strings.Join(parts, ", ")
	if j := decidingTask(tasks); j != nil {
		text += fmt.Sprintf("; first %s: %s", taskID(j), ending(j))
	}
	return text
}

// runArray is run for an array.
func (t *attachment) runArray(ctx context.Context, out io.Writer) (int, string, error) {
	tasks, err := followArray(ctx, t.client, out, t.job)
	if err != nil {
		return 0, "", err
	}
	code := app.ExitOK
	if j := decidingTask(tasks); j != nil {
		code = jobExit(j)
	}
	return code, arrayEnding(tasks), nil
}

// runJob is run for a job that is no array.
func (t *attachment) runJob(ctx context.Context, out io.Writer) (int, string, error) {
	if err := followLogs(ctx, t.client, out, t.job, 1, t.offset, ranklog.All); err != nil {
		return 0, "", err
	}
	j, err := oneJob(ctx, t.client, t.job)
	if err != nil {
		return 0, "", err
	}
	return jobExit(j), ending(j), nil
}
