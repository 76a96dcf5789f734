package rest

import (
	"iter"
	"net/http"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/errno"
	"bireme.dev/bireme/internal/slurm/report"
	"bireme.dev/bireme/internal/slurm/schema"
)

func listJobs(c *Call) (*schema.Record, error) {
	if err := c.unchanged("jobs"); err != nil {
		return nil, err
	}
	query := client.JobsQuery{History: true, Recent: true, Since: c.api.Now().Add(-cmd.MinJobAge)}
	first, next, err := c.api.Client.JobPages(c.Context, query)
	if err != nil {
		return nil, err
	}
	return c.jobPages(&pages{first, next})
}

// pages is a listing of jobs that comes in pages.
type pages struct {
	list *client.JobList
	next func(*client.JobList) (*client.JobList, error) // nil: there is one page
}

// records are made while they are written: a listing may be long.
type records = iter.Seq[*schema.Record]

// each gives the records of all pages. A page is asked for, and its jobs are converted, when those before it are
// written. If that fails, the answer is not whole.
func (p *pages) each(c *Call, convert func(*client.JobList) (records, error)) records {
	return func(yield func(*schema.Record) bool) {
		for list := p.list; list != nil; {
			var some records
			if some, c.broken = convert(list); c.broken != nil {
				return
			}
			for r := range some {
				if !yield(r) {
					return
				}
			}
			if p.next == nil {
				return
			}
			if list, c.broken = p.next(list); c.broken != nil {
				return
			}
		}
	}
}

// jobs is a listing.
func (c *Call) jobs(list []client.Job) (*schema.Record, error) {
	return c.jobPages(&pages{list: &client.JobList{Jobs: list}})
}

func (c *Call) jobPages(p *pages) (*schema.Record, error) {
	o, err := c.records()
	if err != nil {
		return nil, err
	}
	jobs := p.each(c, func(list *client.JobList) (records, error) {
		return func(yield func(*schema.Record) bool) {
			for i := range list.Jobs {
				if list.Jobs[i].Spec != nil && !yield(report.JobRecord(&list.Jobs[i], o)) {
					return
				}
			}
		}, nil
	})
	return schema.New("openapi_job_info_resp").Set("jobs", jobs).Set("last_update", c.lastUpdate()).
		Set("last_backfill", c.lastUpdate()), nil
}

func showJob(c *Call) (*schema.Record, error) {
	if err := c.unchanged("jobs"); err != nil {
		return nil, err
	}
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	list, err := c.api.Client.Job(c.Context, id)
	if err != nil {
		return nil, err
	}
	return c.jobs(list.Jobs)
}

// jobStates lists jobs, or some of them by job_id.
func jobStates(c *Call) (*schema.Record, error) {
	ids := words(c.Query, "job_id")
	if len(ids) == 0 {
		return listJobs(c)
	}
	list, err := c.api.Client.Jobs(c.Context, client.JobsQuery{
		IDs: ids, History: true, Recent: true, Since: c.api.Now().Add(-cmd.MinJobAge),
	})
	if err != nil {
		return nil, err
	}
	return c.jobs(list.Jobs)
}

// jobID is the job of the path: 12, 12_3 or 12_[1-3].
func (c *Call) jobID() (string, error) {
	id := c.Path("job_id")
	if n, err := strconv.ParseInt(id, 10, 64); err == nil && n > 0 || strings.ContainsAny(id, "_+") {
		return id, nil
	}
	return "", badJobID(id)
}

func badJobID(id string) error {
	return fail(http.StatusNotFound, 2017, "Invalid job id specified", "there is no job "+strconv.Quote(id))
}

// signalOf reads a signal; ends: it is the one that ends jobs, as is none at all.
func signalOf(text string) (n int32, ends bool, err error) {
	if text == "" {
		return 0, true, nil
	}
	sig, err := grammar.ParseSignal(text)
	if err != nil {
		return 0, false, fail(http.StatusBadRequest, errno.Parsing, "Failure during parsing",
			"signal: "+strconv.Quote(text)+" is no signal")
	}
	return int32(sig), sig == 9, nil
}

// killFlags takes the flags of a cancel over. It warns of those that mean nothing here.
func (c *Call) killFlags(to *client.Cancel, flags []string) error {
	for _, f := range flags {
		switch word := strings.ToUpper(strings.TrimSpace(f)); word {
		case "":
		case "BATCH_JOB":
			to.Batch = true
		case "FULL_JOB":
			to.Full = true
		case "HURRY":
			to.Abort = true
		case "CRON_JOBS":
			to.Cron = true
		default:
			if !schema.Known("kill_flag", word) {
				return badField("flags", f)
			}
			c.unused(c.Endpoint.Path, "flags: "+word)
		}
	}
	return nil
}

func cancelJob(c *Call) (*schema.Record, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	ask := &client.Cancel{IDs: []string{id}}
	sig, ends, err := signalOf(c.Query.Get("signal"))
	if err != nil {
		return nil, err
	}
	if !ends {
		ask.Signal = sig
	}
	if err := c.killFlags(ask, words(c.Query, "flags")); err != nil {
		return nil, err
	}
	done, err := c.api.Client.Cancel(c.Context, ask)
	if err != nil {
		return nil, err
	}
	body := schema.New("openapi_kill_job_resp").Set("status", statuses(done))
	if len(done.Results) == 0 {
		return body, badJobID(id)
	}
	for _, r := range done.Results {
		if r.Error != nil {
			return body, r.Error
		}
	}
	return body, nil
}

func statuses(done *client.Cancelled) []*schema.Record {
	list := make([]*schema.Record, 0, len(done.Results))
	for _, r := range done.Results {
		s := schema.New("kill_jobs_resp_job").Set("step_id", r.ID)
		if id, err := strconv.ParseInt(strings.SplitN(r.ID, "_", 2)[0], 10, 64); err == nil {
			s.Set("job_id", schema.Int(id))
		}
		e := schema.New("kill_jobs_resp_error").Set("string", "No error")
		if r.Error != nil {
			e.Set("string", slurm.ErrorText(r.Error)).Set("code", errno.Number(r.Error)).Set("message", r.Error.Error())
		}
		list = append(list, s.Set("error", e))
	}
	return list
}

func cancelJobs(c *Call) (*schema.Record, error) {
	in, err := c.read()
	if err == nil {
		err = c.refuseUnknown()
	}
	if err != nil {
		return nil, err
	}
	nodes, err := hosts("nodes", in.List("nodes"))
	if err != nil {
		return nil, err
	}
	one := func(name string) []string {
		if v := in.Text(name); v != "" {
			return []string{v}
		}
		return nil
	}
	ask := &client.Cancel{
		IDs: in.List("jobs"), Projects: one("account"), Names: one("job_name"), Partitions: one("partition"),
		QOS: one("qos"), Reservations: one("reservation"), States: in.List("job_state"), WCKeys: one("wckey"),
		Nodes: nodes, Users: one("user_name"),
	}
	if id := in.Text("user_id"); id != "" {
		name, err := c.userOf(id)
		if err != nil {
			return nil, err
		}
		ask.Users = append(ask.Users, name)
	}
	if err := c.killFlags(ask, in.List("flags")); err != nil {
		return nil, err
	}
	sig, ends, err := signalOf(in.Text("signal"))
	if err != nil {
		return nil, err
	}
	if !ends {
		ask.Signal = sig
	}
	if len(ask.IDs)+len(ask.Projects)+len(ask.Names)+len(ask.Partitions)+len(ask.QOS)+len(ask.Reservations)+
		len(ask.States)+len(ask.WCKeys)+len(ask.Nodes)+len(ask.Users) == 0 {
		return nil, fail(http.StatusBadRequest, errno.NothingFound, "Nothing found with query",
			"the request names no jobs and no condition")
	}
	done, err := c.api.Client.Cancel(c.Context, ask)
	if err != nil {
		return nil, err
	}
	return schema.New("openapi_kill_jobs_resp").Set("status", statuses(done)), nil
}

// userOf finds the user of a uid. A name stands for itself.
func (c *Call) userOf(id string) (string, error) {
	uid, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return id, nil //nolint:nilerr // it is a name
	}
	list, err := c.api.Client.Users(c.Context)
	if err != nil {
		return "", err
	}
	for i := range list.Users {
		if u := &list.Users[i]; u.UID != nil && uint64(*u.UID) == uid {
			return string(u.Name), nil
		}
	}
	return "", fail(http.StatusBadRequest, errno.NothingFound, "Nothing found with query", "no user has uid "+id)
}

// ids of a change's answer.
func jobNumber(id string) int64 {
	n, err := strconv.ParseInt(strings.SplitN(id, "_", 2)[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func updateJob(c *Call) (*schema.Record, error) {
	id, err := c.jobID()
	if err != nil {
		return nil, err
	}
	in, err := c.read()
	if err != nil {
		return nil, err
	}
	u, err := c.update(in)
	if err != nil {
		return nil, err
	}
	if err := c.api.Client.UpdateJob(c.Context, id, u); err != nil {
		if core.CodeOf(err) == core.NotFound {
			return nil, badJobID(id)
		}
		return nil, err
	}
	return schema.New("openapi_job_post_response").Set("job_id", id).
		Set("results", []*schema.Record{schema.New("job_array_response_msg_entry").Set("job_id", jobNumber(id)).
			Set("error", "No error")}), nil
}
