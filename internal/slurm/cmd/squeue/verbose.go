package squeue

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"bireme.dev/bireme/internal/slurm/cmd"
)

// sayOptions is what -v prints before the listing.
func sayOptions(out io.Writer, w *cmd.World, f cmd.Flags, q *query) {
	or := func(option, variable string) string {
		return cmp.Or(f.Get(option), w.Getenv(variable), "(null)")
	}
	flag := func(on bool) string {
		if on {
			return "1"
		}
		return "0"
	}
	list := func(words []string) string { return cmp.Or(strings.Join(words, ","), "(null)") }
	all := f.Has("all") || f.Has("partition") || w.Getenv("SQUEUE_ALL") != ""
	cmd.WriteBlock(out, 11, []cmd.Pair{
		{Name: "all", Value: fmt.Sprint(all)},
		{Name: "array", Value: fmt.Sprint(q.array)},
		{Name: "federation", Value: f.Bool("federation")},
		{Name: "format", Value: or("format", "SQUEUE_FORMAT")},
		{Name: "iterate", Value: f.Number("iterate")},
		{Name: "job_flag", Value: flag(f.Has("jobs"))},
		{Name: "jobs", Value: list(q.q.IDs)},
		{Name: "licenses", Value: list(q.licenses)},
		{Name: "local", Value: f.Bool("local")},
		{Name: "names", Value: list(q.q.Names)},
		{Name: "nodes", Value: f.Get("nodelist")},
		{Name: "partitions", Value: list(q.q.Partitions)},
		{Name: "priority", Value: fmt.Sprint(q.perPartition)},
		{Name: "reservation", Value: f.OrNull("reservation")},
		{Name: "sibling     ", Value: f.Bool("sibling")},
		{Name: "sort", Value: or("sort", "SQUEUE_SORT")},
		{Name: "start_flag", Value: flag(f.Has("start"))},
		{Name: "states", Value: or("states", "SQUEUE_STATES")},
		{Name: "step_flag", Value: flag(f.Has("steps"))},
		{Name: "steps", Value: list(q.stepIDs)},
		{Name: "users", Value: list(q.q.Users)},
		{Name: "verbose", Value: f.Count("verbose")},
	})
	fmt.Fprint(out, "\n\n")
}
