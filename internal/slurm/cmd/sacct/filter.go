package sacct

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

// refused are options of Slurm's that have no meaning here: a listing without their effect would be wrong.
var refused = map[string]string{
	"file":         "records are in the server's store, not in a file",
	"flags":        "which scheduler started a job is not recorded",
	"associations": "jobs are recorded with account and user, not with ids of associations; use -A and -u",
}

// setFilters reads the filters that the server does not know.
func (q *query) setFilters(w *cmd.World, f cmd.Flags) error {
	for option, why := range refused {
		if f.Has(option) {
			return fail(w, "--%s is not supported: %s", option, why)
		}
	}
	if err := q.setUnits(w, f); err != nil {
		return err
	}
	if names := f.AllList("wckeys"); len(names) > 0 {
		q.only = append(q.only, func(j *client.Job) bool { return slices.Contains(names, j.Spec.More().WCKey) })
	}
	if words := f.AllList("reason"); len(words) > 0 {
		q.only = append(q.only, func(j *client.Job) bool {
			return slices.ContainsFunc(words, func(s string) bool { return strings.EqualFold(s, j.Reason.String()) })
		})
	}
	if words := f.AllList("constraints"); len(words) > 0 {
		q.only = append(q.only, func(j *client.Job) bool {
			has := strings.FieldsFunc(j.Spec.More().Constraint.String(), func(r rune) bool {
				return strings.ContainsRune("&|[](),*", r)
			})
			return !slices.ContainsFunc(words, func(s string) bool { return !slices.Contains(has, s) })
		})
	}
	if err := q.setGroups(w, f.AllList("gid")); err != nil {
		return err
	}
	return q.setRanges(w, f)
}

// setUnits reads how sizes are printed. --completion reads another program's file, which there is none of.
func (q *query) setUnits(w *cmd.World, f cmd.Flags) error {
	complain := func(lines ...string) error { return &slurm.Complaint{Lines: lines, Exit: slurm.ExitError} }
	switch {
	case f.Has("completion"):
		return complain("Slurm job completion is disabled")
	case f.Has("units"):
		u, ok := report.ParseUnits(f.Get("units"))
		if !ok {
			return complain(
				fmt.Sprintf("%s: error: Invalid unit type '%s'. Possible options are 'KMGTP'", w.Name, f.Get("units")),
				w.Name+": fatal: Invalid unit type")
		}
		q.units = u
	case f.Has("noconvert"):
		q.units = report.Raw
	}
	return nil
}

func (q *query) setGroups(w *cmd.World, words []string) error {
	ids, bad := cmd.GroupIDs(words)
	if bad != "" {
		return fail(w, "Invalid group id: %s", bad)
	}
	if len(ids) > 0 {
		q.only = append(q.only, func(j *client.Job) bool { return slices.Contains(ids, j.Spec.GID) })
	}
	return nil
}

// setRanges reads MIN[-MAX] of nodes and CPUs, and the least and greatest time limit.
func (q *query) setRanges(w *cmd.World, f cmd.Flags) error {
	for option, of := range map[string]func(j *client.Job) int64{
		"nnodes": func(j *client.Job) int64 { return int64(len(j.Alloc.Nodes)) },
		"ncpus": func(j *client.Job) (n int64) {
			for i := range j.Alloc.Nodes {
				n += int64(j.Alloc.Nodes[i].CPUs)
			}
			return n
		},
	} {
		if !f.Has(option) {
			continue
		}
		low, high, two := strings.Cut(f.Get(option), "-")
		if !two {
			high = low
		}
		from, err := strconv.ParseInt(low, 10, 64)
		to, err2 := strconv.ParseInt(high, 10, 64)
		if err != nil || err2 != nil || from > to {
			return fail(w, "Invalid %s specification: %s", option, f.Get(option))
		}
		q.only = append(q.only, func(j *client.Job) bool { return j.Alloc != nil && of(j) >= from && of(j) <= to })
	}
	limit := func(option string) (core.Seconds, error) {
		m, err := grammar.ParseTimeLimit(f.Get(option))
		if err != nil {
			return 0, fail(w, "Invalid time limit specification: %s", f.Get(option))
		}
		if m == grammar.Unlimited {
			return core.Forever, nil
		}
		return core.Seconds(m * 60), nil
	}
	if !f.Has("timelimit-min") && !f.Has("timelimit-max") {
		return nil
	}
	if !f.Has("timelimit-min") {
		return fail(w, "You need to specify a minimum time limit (-k) with a maximum (-K)")
	}
	least, err := limit("timelimit-min")
	if err != nil {
		return err
	}
	most := least
	if f.Has("timelimit-max") {
		if most, err = limit("timelimit-max"); err != nil {
			return err
		}
	}
	q.only = append(q.only, func(j *client.Job) bool { return j.Spec.TimeLimit >= least && j.Spec.TimeLimit <= most })
	return nil
}

// jobs asks for the jobs. A component of a het job brings the others with --whole-hetjob, its first one without; with
// "no" none does.
func (q *query) jobs(ctx context.Context, c *client.Client) (*client.JobList, error) {
	list, err := c.Jobs(ctx, q.q)
	if err != nil || q.whole == "" || len(q.q.IDs) == 0 {
		return list, err
	}
	if q.whole == "no" {
		list.Jobs = slices.DeleteFunc(list.Jobs, func(j client.Job) bool {
			ref := j.Spec.More().Het
			return ref != nil && !slices.Contains(q.q.IDs, fmt.Sprint(j.ID)) &&
				!slices.Contains(q.q.IDs, fmt.Sprintf("%d+%d", ref.Lead, ref.Offset))
		})
		return list, nil
	}
	more := q.q
	for i := range list.Jobs {
		if ref := list.Jobs[i].Spec.More().Het; ref != nil && !slices.Contains(more.IDs, fmt.Sprint(ref.Lead)) {
			more.IDs = append(slices.Clone(more.IDs), fmt.Sprint(ref.Lead))
		}
	}
	if len(more.IDs) == len(q.q.IDs) {
		return list, nil
	}
	return c.Jobs(ctx, more)
}
