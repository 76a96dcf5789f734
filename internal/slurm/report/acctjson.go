package report

import (
	"slices"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
)

// AcctJSON is a job as sacct --json of Slurm 22.05 (openapi dbv0.0.38) writes it, as far as we have it.
type AcctJSON struct {
	Account         string         `json:"account"`
	Comment         map[string]any `json:"comment"`
	AllocationNodes int32          `json:"allocation_nodes"`
	Array           acctArray      `json:"array"`
	Association     map[string]any `json:"association"`
	Cluster         string         `json:"cluster"`
	Constraints     string         `json:"constraints"`
	DerivedExitCode acctExit       `json:"derived_exit_code"`
	Time            acctTime       `json:"time"`
	ExitCode        acctExit       `json:"exit_code"`
	Flags           []string       `json:"flags"`
	Group           uint32         `json:"group"`
	JobID           int64          `json:"job_id"`
	Name            string         `json:"name"`
	Nodes           string         `json:"nodes"`
	Partition       string         `json:"partition"`
	Priority        uint32         `json:"priority"`
	QOS             string         `json:"qos"`
	Required        struct {
		CPUs   int32 `json:"CPUs"`
		Memory int64 `json:"memory"`
	} `json:"required"`
	KillUser *string `json:"kill_request_user"`
	State    struct {
		Current string `json:"current"`
		Reason  string `json:"reason"`
	} `json:"state"`
	Steps []acctStep `json:"steps"`
	TRES  struct {
		Allocated []acctTRES `json:"allocated"`
		Requested []acctTRES `json:"requested"`
	} `json:"tres"`
	User    string `json:"user"`
	WorkDir string `json:"working_directory"`
}

type acctArray struct {
	JobID  int64   `json:"job_id"`
	Task   *string `json:"task"`
	TaskID *int32  `json:"task_id"`
}

type acctExit struct {
	Status     string `json:"status"`
	ReturnCode int32  `json:"return_code"`
	Signal     *struct {
		ID int32 `json:"signal_id"`
	} `json:"signal,omitempty"`
}

type acctClock struct {
	Seconds      int64 `json:"seconds"`
	Microseconds int64 `json:"microseconds"`
}

type acctTime struct {
	Elapsed    int64     `json:"elapsed"`
	Eligible   int64     `json:"eligible,omitempty"`
	End        int64     `json:"end"`
	Start      int64     `json:"start"`
	Submission int64     `json:"submission,omitempty"`
	Suspended  int64     `json:"suspended"`
	System     acctClock `json:"system"`
	Limit      *int64    `json:"limit,omitempty"`
	Total      acctClock `json:"total"`
	User       acctClock `json:"user"`
}

type acctTRES struct {
	Type  string  `json:"type"`
	Name  *string `json:"name"`
	ID    int     `json:"id"`
	Count int64   `json:"count"`
}

type acctStep struct {
	Nodes struct {
		Count int32  `json:"count"`
		Range string `json:"range"`
	} `json:"nodes"`
	Time     acctTime `json:"time"`
	ExitCode acctExit `json:"exit_code"`
	Tasks    struct {
		Count int32 `json:"count"`
	} `json:"tasks"`
	State string `json:"state"`
	Step  struct {
		JobID int64  `json:"job_id"`
		ID    string `json:"id"`
		Name  string `json:"name"`
	} `json:"step"`
	TRES struct {
		Allocated []acctTRES `json:"allocated"`
	} `json:"tres"`
}

// AcctToJSON converts rows: each job with the steps that follow it.
func AcctToJSON(rows []AcctRow) []AcctJSON {
	out := []AcctJSON{}
	for i := range rows {
		r := &rows[i]
		if r.Step == nil {
			out = append(out, acctJob(r))
			continue
		}
		if len(out) > 0 && out[len(out)-1].JobID == int64(r.Job.ID) {
			last := &out[len(out)-1]
			last.Steps = append(last.Steps, acctStepOf(r))
		}
	}
	return out
}

func acctJob(r *AcctRow) AcctJSON {
	j, s := r.Job, r.Job.Spec
	want := asked(s)
	out := AcctJSON{
		Account: string(s.Project), Cluster: r.Cluster, Constraints: s.More().Constraint.String(), Group: s.GID,
		JobID: int64(j.ID), Name: s.Name,
		Nodes: r.nodeList(), Partition: partitionOf(&j.Job), Priority: j.Priority, QOS: string(s.QOS),
		User: string(s.User), WorkDir: s.IO.WorkDir,
		Comment: map[string]any{"administrator": nil, "job": nullable(s.More().Comment), "system": nil},
		Association: map[string]any{
			"account": string(s.Project), "cluster": r.Cluster, "partition": nil,
			"user": string(s.User),
		},
		ExitCode: exitJSON(r.Exit(), j.State), DerivedExitCode: exitJSON(r.Derived, core.Completed), Flags: []string{},
		Steps: []acctStep{},
		Time:  r.timeJSON(),
	}
	out.Time.Eligible, out.Time.Submission = j.Eligible.Unix(), j.Submit.Unix()
	if m := minutes(s.TimeLimit); m >= 0 {
		out.Time.Limit = &m
	}
	out.Required.CPUs, out.Required.Memory = want.cpus, slurm.InMiB(want.mem)
	out.State.Current, out.State.Reason = j.State.String(), reasonOf(j).String()
	if j.Stop != nil {
		by := string(j.Stop.By)
		out.KillUser = &by
	}
	out.TRES.Requested, out.TRES.Allocated = want.json(), []acctTRES{}
	if j.Alloc != nil {
		have := billed(j)
		out.AllocationNodes, out.TRES.Allocated = have.nodes, have.json()
	}
	if a := j.Array; a != nil {
		out.Array.JobID = int64(a.Base)
		if a.Tasks.Len() > 0 {
			text := client.ArrayTasks(a, s.Throttle)
			out.Array.Task = &text
		} else {
			out.Array.TaskID = &a.Task
		}
	}
	return out
}

func acctStepOf(r *AcctRow) acctStep {
	var out acctStep
	z := r.size()
	out.Nodes.Count, out.Nodes.Range = z.nodes, r.Step.NodeList()
	out.Time, out.ExitCode = r.timeJSON(), exitJSON(r.Exit(), r.Step.State())
	out.Tasks.Count, out.State = r.Step.Tasks(), r.Step.State().String()
	out.Step.JobID, out.Step.ID, out.Step.Name = int64(r.Job.ID), r.Step.Name(), r.Step.Title()
	out.TRES.Allocated = slices.DeleteFunc(z.json(), func(t acctTRES) bool { return t.Type == "billing" })
	return out
}

func (r *AcctRow) timeJSON() acctTime {
	u := r.usage()
	return acctTime{
		Elapsed: r.elapsed(), End: r.end().Unix(), Start: r.start().Unix(), Suspended: seconds(r.Job.PausedFor),
		System: clock(u.Sys), User: clock(u.User), Total: clock(u.Sys + u.User),
	}
}

func clock(d time.Duration) acctClock {
	return acctClock{Seconds: int64(d / time.Second), Microseconds: int64(d % time.Second / time.Microsecond)}
}

func exitJSON(e core.Exit, s core.JobState) acctExit {
	out := acctExit{Status: "SUCCESS", ReturnCode: e.Code}
	switch {
	case e.Signal != 0:
		out.Status = "SIGNALED"
		out.Signal = &struct {
			ID int32 `json:"signal_id"`
		}{e.Signal}
	case e.Code != 0:
		out.Status = "ERROR"
	case !s.Final():
		out.Status = "PENDING"
	}
	return out
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// json lists the same amounts as tres.
func (z *size) json() []acctTRES {
	list := []acctTRES{{Type: "cpu", ID: 1, Count: int64(z.cpus)}}
	if z.mem > 0 {
		list = append(list, acctTRES{Type: "mem", ID: 2, Count: slurm.InMiB(z.mem)})
	}
	list = append(list, acctTRES{Type: "node", ID: 4, Count: int64(z.nodes)},
		acctTRES{Type: "billing", ID: 5, Count: z.billing()})
	id := 1001
	for _, name := range sortedKeys(z.gres) {
		n := name
		list = append(list, acctTRES{Type: "gres", Name: &n, ID: id, Count: z.gres[name]})
		id++
	}
	return list
}
