package sacct

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// print writes the table. In the padded form every column is followed by a blank, the last one too, as in Slurm.
func (q *query) print(out *bufio.Writer, rows []report.AcctRow, f cmd.Flags) {
	cols := q.cols
	delimiter := "|"
	if f.Has("delimiter") {
		delimiter = f.Get("delimiter")
	}
	line := func(value func(c *report.AcctColumn) string) {
		for i := range cols {
			v := plain.Cell(value(&cols[i]))
			switch {
			case f.Has("parsable2"):
				if i > 0 {
					out.WriteString(delimiter)
				}
				out.WriteString(v)
			case f.Has("parsable"):
				out.WriteString(v + delimiter)
			default:
				out.WriteString(cols[i].Pad(v) + " ")
			}
		}
		out.WriteByte('\n')
	}
	parsable := f.Has("parsable") || f.Has("parsable2")
	if !f.Has("noheader") {
		line(func(c *report.AcctColumn) string {
			if most := max(c.Width, -c.Width); !parsable && len(c.Name) > most { // titles are cut without a mark
				return c.Name[:most]
			}
			return c.Name
		})
		if !parsable {
			line(func(c *report.AcctColumn) string { return strings.Repeat("-", max(c.Width, -c.Width)) })
		}
	}
	for i := range rows {
		line(func(c *report.AcctColumn) string { return q.units.Text(c.Name, c.Value(&rows[i])) })
	}
}

// showBlobs answers -B and --env-vars.
func showBlobs(ctx context.Context, w *cmd.World, c *client.Client, q *query, env bool) int {
	if len(q.q.IDs) == 0 {
		what := "job scripts"
		if env {
			what = "job environment"
		}
		return w.Complain(fatal(w, "When requesting %s you must also request specific jobs with the '-j' option.", what))
	}
	title, flag, get := "Batch Script for %s", "job_script", c.Script
	if env {
		title, flag, get = "Environment used for %s (must be batch to display)", "job_env", c.Env
	}
	info, err := c.Cluster(ctx)
	if err != nil {
		return w.LoadFailed("slurm_load_ctl_conf error", err)
	}
	flags, told := info.Settings["AccountingStoreFlags"]
	kept := !told || slices.Contains(strings.Split(flags, ","), flag)
	for _, id := range q.q.IDs {
		data, err := get(ctx, id)
		if core.CodeOf(err) == core.NotFound { // as in Slurm, of a job that nobody knows nothing is said
			if _, err := c.Job(ctx, id); core.CodeOf(err) == core.NotFound {
				continue
			}
		}
		fmt.Fprintf(w.Out, title+"\n%s\n", id, strings.Repeat("-", 80))
		text := string(data)
		switch {
		case core.CodeOf(err) == core.NotFound || err == nil && (text == "" || !kept):
			text = "NONE\n"
		case err != nil:
			w.Errorf("%s", slurm.ErrorText(err))
			return slurm.ExitError
		case env:
			text = strings.ReplaceAll(text, "\x00", "\n")
		}
		fmt.Fprint(w.Out, text)
		if !strings.HasSuffix(text, "\n") || text == "NONE\n" {
			fmt.Fprintln(w.Out)
		}
	}
	return 0
}
