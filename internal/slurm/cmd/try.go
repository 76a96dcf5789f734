package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report"
)

// Try answers --test-only: when and where the job would start. What is wrong with it is told as of an allocation.
func (w *World) Try(ctx context.Context, c *client.Client, s *client.Submit) int {
	out, err := c.Try(ctx, s)
	if err != nil {
		for _, line := range slurm.ErrorPreface(err, &s.Spec) {
			w.Errorf("%s", line)
		}
		fmt.Fprintf(w.Err, "allocation failure: %s\n", slurm.ErrorText(err))
		w.HintOfSubmit(ctx, c, err)
		return slurm.ExitError
	}
	for i := range out.Trials {
		t := &out.Trials[i]
		if t.Start == 0 {
			fmt.Fprintln(w.Err, "allocation failure: Requested node configuration is not available")
			w.Hint(t.Why)
			return slurm.ExitError
		}
		w.Infof("Job %d to start at %s using %d processors on nodes %s in partition %s", t.ID,
			report.TimeText(t.Start, "Unknown"), t.CPUs, t.Nodes, t.Partition)
		if len(t.Preempts) > 0 {
			ids := make([]string, len(t.Preempts))
			for k, id := range t.Preempts {
				ids[k] = strconv.FormatInt(int64(id), 10)
			}
			w.Infof("  Preempts: %s", strings.Join(ids, ","))
		}
	}
	return 0
}
