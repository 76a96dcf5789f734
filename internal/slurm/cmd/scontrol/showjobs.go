package scontrol

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/report"
)

func (s jobVerbs) showJobs(ctx context.Context, args []string) int {
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	id, task := "0", -1
	if len(args) > 0 {
		word, index, ok := strings.Cut(args[0], "_")
		if id = word; ok {
			if n, err := strconv.Atoi(index); err == nil {
				task = n
			}
		}
		if lead, offset, ok := strings.Cut(word, "+"); ok && isNumber(offset) {
			word = lead // a component of a het job
		}
		if _, err := strconv.ParseUint(word, 10, 63); err != nil {
			fmt.Fprintln(s.w.Err, "scontrol_print_job error: Invalid job id specified")
			return slurm.ExitError
		}
	}
	var list *client.JobList
	if id == "0" { // all jobs; with a task, that one of every array
		list, err = c.Jobs(ctx, client.JobsQuery{History: true, Recent: true, Since: s.w.Now().Add(-cmd.MinJobAge)})
	} else {
		list, err = c.Job(ctx, args[0])
		if core.CodeOf(err) == core.NotFound {
			if _, again := c.Job(ctx, id); task >= 0 && again == nil {
				list, err = &client.JobList{}, nil
			} else {
				err = core.Errorf(core.NotFound, "no such job").Because(slurm.ReasonInvalidJobID)
			}
		}
	}
	if err == nil && list.MinAge > 0 && len(list.Jobs) > 0 && !slices.ContainsFunc(list.Jobs, func(j client.Job) bool {
		return !j.State.Final() || j.End.Add(list.MinAge.Duration()) > list.Now
	}) {
		err = core.Errorf(core.NotFound, "it ended too long ago").Because(slurm.ReasonInvalidJobID)
	}
	if err != nil {
		return s.w.LoadFailed("slurm_load_jobs error", err)
	}
	if task >= 0 {
		if list.Jobs = onlyTask(list.Jobs, task); len(list.Jobs) == 0 {
			fmt.Fprintf(s.w.Out, "Job %s not found\n", args[0])
			return slurm.ExitError
		}
	}
	list.Jobs = slices.DeleteFunc(list.Jobs, func(j client.Job) bool { return j.Spec == nil })
	// An array shows the tasks that wait first, then those that started, the last one first.
	slices.SortStableFunc(list.Jobs, func(a, b client.Job) int {
		if base(&a) != base(&b) || a.Array == nil || b.Array == nil {
			return cmp.Compare(base(&a), base(&b))
		}
		return cmp.Or(cmp.Compare(len(b.Array.Tasks.Ranges()), len(a.Array.Tasks.Ranges())), cmp.Compare(b.ID, a.ID))
	})
	s.show.Now = cmp.Or(list.Now, core.At(s.w.Now()))
	out := bufio.NewWriter(s.w.Out)
	defer out.Flush()
	if s.doc != nil {
		info, err := c.Cluster(ctx)
		if err != nil {
			return s.w.LoadFailed("slurm_load_jobs error", err)
		}
		body := cmd.JobsDocument(list.Jobs, cmd.RecordOptions(info.Name), s.w.Now())
		return s.doc.Print(out, body, info.Name, false)
	}
	listing{out, s.heads}.head(s.w.Now(), len(list.Jobs))
	if len(list.Jobs) == 0 {
		fmt.Fprintln(out, "No jobs in the system")
	}
	derived := map[core.JobID]core.Exit{}
	for i := range list.Steps {
		derived[list.Steps[i].Job] = report.Worse(derived[list.Steps[i].Job], list.Steps[i].Exit)
	}
	for i := range list.Jobs {
		s.show.Derived = derived[list.Jobs[i].ID]
		out.WriteString(report.ShowJob(&list.Jobs[i], s.show))
	}
	return 0
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 31)
	return err == nil
}

// onlyTask gives the records of one task of arrays. As in Slurm, a task that was canceled before it started has none.
func onlyTask(list []client.Job, task int) []client.Job {
	var out []client.Job
	for _, j := range list {
		switch {
		case j.Array == nil:
		case j.Array.Tasks.Len() == 0:
			if int(j.Array.Task) == task {
				out = append(out, j)
			}
		case !j.State.Final() && j.Array.Tasks.Contains(task):
			ref := *j.Array
			ref.Task, ref.Tasks = int32(task), taskset.Set{}
			j.Array = &ref
			out = append(out, j)
		}
	}
	return out
}

func base(j *client.Job) core.JobID {
	if j.Array != nil {
		return j.Array.Base
	}
	return j.ID
}

// writeScript saves a job's script: slurm-ID.sh, a file that is named, or - for standard output.
func (s jobVerbs) writeScript(ctx context.Context, args []string) int {
	switch {
	case len(args) == 0:
		fmt.Fprintln(s.w.Err, "too few arguments for keyword:write")
		return slurm.ExitError
	case len(args) > 2:
		fmt.Fprintln(s.w.Err, "too many arguments for keyword:write")
		return slurm.ExitError
	}
	c, err := s.client()
	if err != nil {
		s.w.Errorf("%v", err)
		return slurm.ExitError
	}
	script, err := c.Script(ctx, args[0])
	if err != nil {
		fmt.Fprintf(s.w.Err, "job script retrieval failed: %s\n", jobText(err))
		return slurm.ExitError
	}
	name := "slurm-" + args[0] + ".sh"
	if len(args) > 1 {
		name = args[1]
	}
	if name == "-" {
		s.w.File().Write(script)
		return 0
	}
	path := name
	if !strings.HasPrefix(path, "/") {
		path = s.w.Dir + "/" + path
	}
	if err := os.WriteFile(path, script, 0o644); err != nil {
		fmt.Fprintf(s.w.Err, "failed to open file `%s`: %s\n", name, cmd.ErrnoText(err))
		return slurm.ExitError
	}
	fmt.Fprintf(s.w.Out, "batch script for job %s written to %s\n", args[0], name)
	return 0
}
