package runs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/logstore"
	"bireme.dev/bireme/internal/store"
)

type pollBody struct {
	RunName         string  `json:"run_name" in:"required"`
	JobSubmissionID string  `json:"job_submission_id" in:"required,uuid"`
	StartTime       *string `json:"start_time" in:"time"`
	EndTime         *string `json:"end_time" in:"time"`
	Descending      bool    `json:"descending"`
	NextToken       *string `json:"next_token"`
	Limit           int     `json:"limit" in:"ge=0,le=1000"`
	Diagnose        bool    `json:"diagnose"`
	// Raw is our own commands' wish for the log of all nodes, with its marks: they count its bytes.
	Raw bool `json:"bireme_raw"`
}

// Defaults sets what a client leaves out.
func (b *pollBody) Defaults() { b.Limit = 100 }

// poll gives a page of a job's output.
func (a *Runs) poll(c *front.Call, in *pollBody) (any, error) {
	l := a.look(c)
	out := &wire.LogPage{Logs: []wire.LogEvent{}}
	r, err := l.find(c.Context(), c.Project.Name, in.RunName)
	if err != nil {
		return nil, err
	}
	done, err := a.Heavy(c.Context(), c.Caller)
	if err != nil {
		return nil, err
	}
	defer done()
	j, attempt, rank, err := l.submissionOf(c.Context(), r, in.JobSubmissionID)
	if err != nil || j == nil {
		return out, err
	}
	if err := a.Jobs.May(c.Caller, j); err != nil {
		return nil, err
	}
	a.Saw(c.Caller, j)
	if in.Diagnose {
		return l.diagnose(out, j, attempt), nil
	}
	q := logstore.PageQuery{From: -1, Limit: in.Limit, Descending: in.Descending}
	if in.NextToken != nil {
		if q.From, err = strconv.ParseInt(*in.NextToken, 10, 64); err != nil || q.From < 0 {
			return nil, front.Errorf("Invalid next_token: %.40q", *in.NextToken)
		}
	}
	if ranksOf(j) > 1 && !in.Raw {
		q.Rank = &rank
	}
	q.Since, q.Until = moment(in.StartTime), moment(in.EndTime)
	list, next, err := a.Logs.Page(logstore.Key{Job: j.ID, Attempt: attempt}, q)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		out.Logs = append(out.Logs, wire.LogEvent{
			Timestamp: wire.Time(core.At(p.At)), LogSource: wire.LogStdout, Message: p.Data,
		})
	}
	if next >= 0 && in.Limit > 0 {
		text := strconv.FormatInt(next, 10)
		out.NextToken = &text
	}
	return out, nil
}

func moment(text *string) time.Time {
	if text == nil {
		return time.Time{}
	}
	t, _ := wire.ParseTime(*text) // its form was checked
	return t.Go()
}

// maxRanks bounds the nodes whose parts of a run are looked through for an id.
const maxRanks = 10_000

// ranksOf counts the nodes whose parts of a run a job stands for. The first of several groups stands for all of them.
func ranksOf(j *core.Job) int {
	ranks := 1
	if j.Spec != nil {
		ranks = int(max(1, j.Spec.Shape.NodesMin))
	}
	if j.Alloc != nil {
		ranks = max(ranks, len(j.Alloc.Nodes))
	}
	if h := j.Spec.More().Het; h != nil {
		ranks = max(ranks, maxGroupRanks)
	}
	return ranks
}

// maxGroupRanks bounds the nodes of groups, whose number the first group's job does not know.
const maxGroupRanks = 256

// attemptOf finds the attempt and rank of a job that a submission's id means. All nodes of a job write one log.
func attemptOf(j *core.Job, id string) (attempt int32, rank int, ok bool) {
	ranks := ranksOf(j)
	for num := j.Attempt; num >= 0 && num > j.Attempt-2-core.MaxEarlier; num-- {
		for rank := range min(ranks, maxRanks) {
			if convert.SubmissionID(j.ID, num, rank) == id {
				return num + 1, rank, true
			}
		}
	}
	return 0, 0, false
}

// submissionOf finds the job and attempt of a run that a submission's id means; no job: there is no such one. Which of
// an array's tasks stands for a run changes with time.
func (l *look) submissionOf(ctx context.Context, r *core.Run, id string) (
	of *core.Job, attempt int32, rank int, err error,
) {
	j, err := l.job(ctx, r)
	if err != nil || j == nil {
		return nil, 0, 0, err
	}
	if attempt, rank, ok := attemptOf(j, id); ok {
		return j, attempt, rank, nil
	}
	if j.Array == nil {
		return nil, 0, 0, nil
	}
	ended, err := l.a.Store.Jobs(ctx, store.JobQuery{IDs: []core.JobID{j.Array.Base}})
	if err != nil {
		return nil, 0, 0, call.StoreError(err)
	}
	for _, j := range append(slices.Clone(l.v.LiveTasks(j.Array.Base)), ended...) {
		if attempt, rank, ok := attemptOf(j, id); ok {
			return j, attempt, rank, nil
		}
	}
	return nil, 0, 0, nil
}

// diagnose tells what became of an attempt, in the place of the log that dstack's agent keeps of its own work.
func (l *look) diagnose(out *wire.LogPage, j *core.Job, attempt int32) *wire.LogPage {
	of := *j
	if j.Earlier != nil {
		for i := range j.Earlier.Attempts {
			if j.Earlier.Attempts[i].Attempt == attempt {
				of = j.As(&j.Earlier.Attempts[i])
			}
		}
	}
	last := core.Time(0)
	say := func(at core.Time, format string, args ...any) {
		if at == 0 {
			return
		}
		last = max(at, last+1000)
		line := fmt.Sprintf("time=%s level=info msg=%s\n", wire.Time(at), fmt.Sprintf(format, args...))
		out.Logs = append(out.Logs, wire.LogEvent{
			Timestamp: wire.Time(last), LogSource: wire.LogStdout, Message: []byte(line),
		})
	}
	say(of.Submit, "Job submitted job=%d", j.ID)
	if of.State == core.Pending {
		if why := l.waiting(j); why != "" {
			say(l.Now, "Job waits reason=%q", why)
		}
		return out
	}
	if of.Alloc != nil {
		names := make([]string, len(of.Alloc.Nodes))
		for i := range of.Alloc.Nodes {
			names[i] = string(of.Alloc.Nodes[i].Node)
		}
		say(of.Start, "Job started attempt=%d nodes=%s", attempt, strings.Join(names, ","))
	}
	if of.State.Final() {
		text := ""
		if of.Message != "" {
			text = fmt.Sprintf(" message=%q", of.Message)
		}
		say(of.End, "Job ended state=%s exit=%d signal=%d reason=%s%s", of.State, of.Exit.Code, of.Exit.Signal,
			of.Termination(), text)
	}
	return out
}
