package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

// jobConditions are the parameters by which finished jobs are chosen.
var jobConditions = []string{
	"account", "cluster", "constraints", "end_time", "groups", "job_name", "node", "partition", "qos", "reservation",
	"skip_steps", "start_time", "state", "step", "users", "wckey",
}

// words are the values of a parameter, each of which may be a list with commas.
func words(q url.Values, name string) (list []string) {
	for _, text := range q[name] {
		list = append(list, cmd.SplitList(text)...)
	}
	return list
}

func has(list []string, word string) bool {
	return slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(w, word) })
}

func (c accounting) moment(name string) (time.Time, error) {
	text := c.Query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := parseTime(text); ok {
		return t, nil
	}
	t, err := grammar.ParseMoment(text, c.api.Now(), grammar.Recent)
	if err != nil {
		return t, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing",
			name+": "+strconv.Quote(text)+" is no time")
	}
	return t, nil
}

func listHistory(c accounting) (*schema.Record, error) {
	since, err := c.moment("start_time")
	if err != nil {
		return nil, err
	}
	until, err := c.moment("end_time")
	if err != nil {
		return nil, err
	}
	states := words(c.Query, "state")
	if _, bad := report.ParseStates(states); bad != "" {
		return nil, badField("state", bad)
	}
	nodes, err := hosts("node", words(c.Query, "node"))
	if err != nil {
		return nil, err
	}
	groups, bad := cmd.GroupIDs(words(c.Query, "groups"))
	if bad != "" {
		return nil, badField("groups", bad)
	}
	info, err := c.info()
	if err != nil {
		return nil, err
	}
	if list := words(c.Query, "cluster"); len(list) > 0 && !has(list, info.Name) {
		return schema.New("openapi_slurmdbd_jobs_resp"), nil
	}
	q := client.JobsQuery{
		History: true, Since: since, Until: until, Users: words(c.Query, "users"), Projects: words(c.Query, "account"),
		Partitions: words(c.Query, "partition"), States: states, Names: words(c.Query, "job_name"),
		Nodes: nodes,
	}
	for _, s := range words(c.Query, "step") { // JOB[.STEP]
		id, _, _ := strings.Cut(s, ".")
		q.IDs = append(q.IDs, id)
	}
	first, next, err := c.api.Client.JobPages(c.Context, q)
	if err != nil {
		return nil, err
	}
	qos, keys := words(c.Query, "qos"), words(c.Query, "wckey")
	resv, marks := words(c.Query, "reservation"), words(c.Query, "constraints")
	out := func(j client.Job) bool {
		if j.Spec == nil {
			return true
		}
		more := j.Spec.More()
		return len(qos) > 0 && !has(qos, string(j.Spec.QOS)) || len(keys) > 0 && !has(keys, more.WCKey) ||
			len(groups) > 0 && !slices.Contains(groups, j.Spec.GID) || len(resv) > 0 && !has(resv, more.Reservation) ||
			len(marks) > 0 && !has(marks, more.Constraint.String())
	}
	return c.history(&pages{first, next}, out, c.Query.Has("skip_steps") && c.Query.Get("skip_steps") != "false")
}

func showHistory(c accounting) (*schema.Record, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	list, err := c.api.Client.Jobs(c.Context, client.JobsQuery{History: true, IDs: []string{id}})
	if err != nil && core.CodeOf(err) != core.NotFound {
		return nil, err
	}
	if err != nil || len(list.Jobs) == 0 {
		return nil, badJobID(id)
	}
	return c.history(&pages{list: list}, func(j client.Job) bool { return j.Spec == nil }, false)
}

// history is a listing of jobs and their steps, without those that are out.
func (c accounting) history(p *pages, out func(client.Job) bool, skipSteps bool) (*schema.Record, error) {
	o, err := c.records()
	if err != nil {
		return nil, err
	}
	jobs := p.each(c.Call, func(list *client.JobList) (records, error) {
		list.Jobs = slices.DeleteFunc(list.Jobs, out)
		rows, err := c.acctRows(list, o, skipSteps)
		return slices.Values(report.AcctRecords(rows, o)), err
	})
	return schema.New("openapi_slurmdbd_jobs_resp").Set("jobs", jobs), nil
}

// acctRows are the rows of jobs and of their steps.
func (c accounting) acctRows(list *client.JobList, o *report.RecordOptions, skipSteps bool) (
	[]report.AcctRow, error,
) {
	byJob := map[core.JobID][]report.StepRow{}
	if !skipSteps {
		steps, err := cmd.Steps(c.Context, c.api.Client, list)
		if err != nil {
			return nil, err
		}
		for _, s := range steps {
			byJob[s.Job.ID] = append(byJob[s.Job.ID], s)
		}
	}
	var rows []report.AcctRow
	for i := range list.Jobs {
		j := &list.Jobs[i]
		steps := byJob[j.ID]
		row := report.AcctRow{Job: j, Cluster: o.Cluster, Now: list.Now}
		for k := range steps {
			if steps[k].Step != nil {
				row.Derived = report.Worse(row.Derived, steps[k].Step.Exit)
			}
		}
		rows = append(rows, row)
		for k := range steps {
			rows = append(rows, report.AcctRow{Job: j, Step: &steps[k], Cluster: o.Cluster, Now: list.Now})
		}
	}
	return rows, nil
}
