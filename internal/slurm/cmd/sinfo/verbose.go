package sinfo

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// flagFields are the lines of the second block, each with the fields that make it true. Slurm pads some of the names.
var flagFields = []struct {
	name   string
	fields []string
}{
	{"alloc_mem_flag  = ", []string{"AllocMem"}},
	{"avail_flag      = ", []string{"Available"}},
	{"comment_flag    = ", []string{"Comment"}},
	{"cpus_flag       = ", []string{"CPUs", "CPUsState"}},
	{"default_time_flag =", []string{"DefaultTime"}},
	{"disk_flag       = ", []string{"Disk"}},
	{"extra_flag      = ", []string{"Extra"}},
	{"features_flag   = ", []string{"Features"}},
	{"features_flag_act = ", []string{"features_act"}},
	{"groups_flag     = ", []string{"Groups"}},
	{"gres_flag       = ", []string{"Gres"}},
	{"gres_used_flag  = ", []string{"GresUsed"}},
	{"job_size_flag   = ", []string{"Size"}},
	{"max_time_flag   = ", []string{"Time"}},
	{"memory_flag     = ", []string{"Memory"}},
	{"partition_flag  = ", []string{"Partition", "PartitionName"}},
	{"port_flag       = ", []string{"Port"}},
	{"priority_job_factor_flag   = ", []string{"PriorityJobFactor"}},
	{"priority_tier_flag   = ", []string{"PriorityTier"}},
	{"reason_flag     = ", []string{"Reason"}},
	{"reason_timestamp_flag = ", []string{"Timestamp"}},
	{"reason_user_flag = ", []string{"User", "UserLong"}},
	{"reservation_flag = ", nil},
	{"root_flag       = ", []string{"Root"}},
	{"oversubscribe_flag      = ", []string{"OverSubscribe"}},
	{"state_flag      = ", []string{"StateCompact", "StateLong"}},
	{"statecomplete_flag = ", []string{"StateComplete"}},
	{"weight_flag     = ", []string{"Weight"}},
}

// sayOptions is what -v prints before the listing.
func sayOptions(out io.Writer, q *report.InfoQuery, f cmd.Flags) {
	states := cmp.Or(strings.ToLower(strings.Join(q.States, ",")), "(null)")
	none := func(text string) string { return cmp.Or(text, "n/a") }
	has := func(names ...string) bool {
		return slices.ContainsFunc(q.Format, func(c column.Column[report.InfoRow]) bool {
			same := func(name string) bool { return strings.EqualFold(name, c.Field.Name) }
			return c.Field != nil && slices.ContainsFunc(names, same)
		})
	}
	filtering := len(q.Nodes)+len(q.States)+len(q.Partitions) > 0 || q.Responding || f.Has("dead")
	exact := "0"
	if q.Exact {
		exact = "1"
	}
	cmd.WriteBlock(out, 11, []cmd.Pair{
		{Name: "dead", Value: f.Bool("dead")},
		{Name: "exact", Value: exact},
		{Name: "filtering", Value: fmt.Sprint(filtering)},
		{Name: "format", Value: cmp.Or(f.Get("format"), f.Get("Format"), longForm(q.Format))},
		{Name: "iterate", Value: f.Number("iterate")},
		{Name: "long", Value: f.Bool("long")},
		{Name: "no_header", Value: f.Bool("noheader")},
		{Name: "node_field", Value: fmt.Sprint(q.PerNode)},
		{Name: "node_format", Value: fmt.Sprint(q.PerNode)},
		{Name: "nodes", Value: none(f.Get("nodes"))},
		{Name: "part_field", Value: fmt.Sprint(has("Partition", "PartitionName"))},
		{Name: "partition", Value: none(strings.Join(q.Partitions, ","))},
		{Name: "responding", Value: fmt.Sprint(q.Responding)},
		{Name: "states", Value: states},
		{Name: "sort", Value: f.OrNull("sort")},
		{Name: "summarize", Value: fmt.Sprint(q.Summary)},
		{Name: "verbose", Value: f.Count("verbose")},
	})
	fmt.Fprintf(out, "all_flag        = %v\n", f.Has("all") || len(q.Partitions) > 0)
	for _, l := range flagFields {
		fmt.Fprintf(out, "%s%v\n", l.name, has(l.fields...))
	}
	fmt.Fprint(out, cmd.Dashes+"\n\n")
}

// longForm writes columns by their long names: partition:9 ,available:.5 ,nodelist:0.
func longForm(cols []column.Column[report.InfoRow]) string {
	var words []string
	for _, c := range cols {
		if c.Field == nil {
			continue
		}
		dot := ""
		if c.Right {
			dot = "."
		}
		words = append(words, fmt.Sprintf("%s:%s%d%s", strings.ToLower(c.Field.Name), dot, c.Width, c.Text))
	}
	return strings.Join(words, ",")
}
