package cmd

import (
	"context"
	"slices"
	"strconv"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/report"
)

// Steps gives the rows of all steps of the jobs in list: batch steps first, then numbered ones. The server sends steps
// with some listings; for others they are asked for job by job.
func Steps(ctx context.Context, c *client.Client, list *client.JobList) ([]report.StepRow, error) {
	byJob := map[core.JobID][]*core.Step{}
	for i := range list.Steps {
		byJob[list.Steps[i].Job] = append(byJob[list.Steps[i].Job], &list.Steps[i])
	}
	var rows []report.StepRow
	for i := range list.Jobs {
		j := &list.Jobs[i]
		if j.Alloc == nil || j.IsArray() {
			continue // it never had nodes
		}
		if j.Spec.Batches() {
			rows = append(rows, report.StepRow{Job: j, Now: list.Now})
		}
		steps := byJob[j.ID]
		if steps == nil && j.Steps > 0 {
			more, err := c.Steps(ctx, strconv.FormatInt(int64(j.ID), 10))
			if err != nil {
				return nil, err
			}
			for k := range more.Steps {
				steps = append(steps, &more.Steps[k])
			}
		}
		slices.SortFunc(steps, func(a, b *core.Step) int { return int(a.ID - b.ID) })
		for _, s := range steps {
			rows = append(rows, report.StepRow{Job: j, Step: s, Now: list.Now})
		}
	}
	return rows, nil
}
