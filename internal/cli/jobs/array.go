package jobs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
)

// arrayTasks returns the records of an array in the order of their tasks, those that have not started last; none if id
// is that of one task, or of a job that is no array.
func arrayTasks(id string, jobs []client.Job) []client.Job {
	if strings.ContainsAny(id, "_+") {
		return nil
	}
	tasks := slices.DeleteFunc(slices.Clone(jobs), func(j client.Job) bool { return j.Array == nil })
	slices.SortStableFunc(tasks, func(a, b client.Job) int {
		if a, b := a.Array.Tasks.Empty(), b.Array.Tasks.Empty(); a != b {
			if a {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Array.Task, b.Array.Task)
	})
	return tasks
}

// taskID is the id of a task, or of those that have not started.
func taskID(j *client.Job) string {
	if j.Array.Tasks.Empty() {
		return fmt.Sprintf("%d_%d", j.Array.Base, j.Array.Task)
	}
	return fmt.Sprintf("%d_[%s]", j.Array.Base, j.Array.Tasks)
}

// mostTold is how many tasks of an array are told of one by one.
const mostTold = 10

// tellArray says how many tasks of an array stand how, and what became of those that neither run nor ended with 0.
func (a why) tellArray(ctx context.Context, c *client.Client, id string, tasks []client.Job) error {
	var states []core.JobState
	count := map[core.JobState]int{}
	var told []*client.Job
	for i := range tasks {
		j := &tasks[i]
		if count[j.State] == 0 {
			states = append(states, j.State)
		}
		count[j.State] += max(1, j.Array.Tasks.Len())
		if j.State != core.Completed && j.State != core.Running {
			told = append(told, j)
		}
	}
	slices.Sort(states)
	parts := make([]string, len(states))
	for i, s := range states {
		parts[i] = fmt.Sprintf("%d %s", count[s], strings.ReplaceAll(lower(s), "_", " "))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "job %s", id)
	if s := tasks[0].Spec; s != nil && s.Name != "" {
		fmt.Fprintf(&b, " (%s)", app.Cell(s.Name))
	}
	fmt.Fprintf(&b, " is an array: %s\n", strings.Join(parts, ", "))
	for _, j := range told[:min(len(told), mostTold)] {
		of := taskID(j)
		if !j.Array.Tasks.Empty() { // the record of these has the array's id
			of = id
		}
		w, err := c.Why(ctx, of)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "  %s %s: %s\n", taskID(j), w.State.Phrase(), app.Cell(w.Why))
	}
	if rest := len(told) - mostTold; rest > 0 {
		fmt.Fprintf(&b, "  and %s more; `bireme ps -a` lists them\n", app.Plural(rest, "task"))
	}
	_, err := a.Out.Write([]byte(plain.Message(b.String())))
	return err
}
