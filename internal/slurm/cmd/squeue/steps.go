package squeue

import (
	"bufio"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// showSteps prints the steps of running jobs.
func (q *query) showSteps(ctx context.Context, w *cmd.World, c *client.Client, out *bufio.Writer) int {
	list, err := c.Jobs(ctx, q.q)
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	rows, err := cmd.Steps(ctx, c, list)
	if err != nil {
		return w.LoadFailed("slurm_get_job_steps error", err)
	}
	rows = slices.DeleteFunc(rows, func(r report.StepRow) bool {
		ended := r.Step != nil && r.Step.State.Final() || r.Step == nil && r.Job.State.Final()
		return ended || len(q.stepIDs) > 0 && !slices.Contains(q.stepIDs, r.ID()) &&
			!slices.Contains(q.stepIDs, jobOf(r.ID()))
	})
	slices.SortStableFunc(rows, func(a, b report.StepRow) int {
		return cmp.Or(cmp.Compare(a.Job.Spec.Partition.String(), b.Job.Spec.Partition.String()),
			cmp.Compare(a.Job.ID, b.Job.ID), cmp.Compare(stepRank(&a), stepRank(&b)))
	})
	cols, bad := column.ParseFormat(report.QueueStepFields, q.stepFormat)
	if q.stepFormat2 != "" {
		cols, bad = column.ParseLongFormat(report.QueueStepFields, q.stepFormat2)
	}
	for _, letter := range bad {
		w.Errorf("Invalid job step format specification: %s", letter)
	}
	var line []byte
	if !q.noHeader {
		out.Write(column.AppendHeader(line, cols))
	}
	for i := range rows {
		line = column.AppendRow(line[:0], cols, &rows[i])
		out.Write(line)
	}
	return 0
}

// stepRank puts a job's numbered steps before its batch step, as squeue does.
func stepRank(r *report.StepRow) int64 {
	if r.Step == nil {
		return math.MaxInt64
	}
	return int64(r.Step.ID)
}

func jobOf(stepID string) string { id, _, _ := strings.Cut(stepID, "."); return id }

// showDocument prints the listing in Slurm's own JSON or YAML.
func showDocument(ctx context.Context, w *cmd.World, c *client.Client, out *bufio.Writer, form *cmd.DocumentForm,
	rows []report.QueueRow,
) int {
	slices.SortFunc(rows, func(a, b report.QueueRow) int { return cmp.Compare(a.ID, b.ID) })
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return w.LoadFailed("slurm_load_jobs error", err)
	}
	jobs := make([]client.Job, 0, len(rows))
	for i := range rows {
		jobs = append(jobs, *rows[i].Job)
	}
	return form.Print(out, cmd.JobsDocument(jobs, cmd.RecordOptions(cluster.Name), w.Now()), cluster.Name, false)
}
