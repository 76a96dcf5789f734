package steps

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/wire"
)

// statPatience is how long nodes may take to tell what a step uses.
const statPatience = 3 * time.Second

// Usage answers GET /jobs/{id}/steps/{step}/usage: the nodes are asked when somebody asks.
func (a *Steps) Usage(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, j, err := a.Jobs.Own(r, who)
	if err != nil {
		return nil, err
	}
	step := r.PathValue("step")
	st := stepOf(v.Snap, j, step)
	runs := j.State == core.Running || j.State == core.Suspended
	if !runs || j.Alloc == nil || step != wire.BatchStep && step != wire.ExternStep && (st == nil || st.State.Final()) {
		return nil, core.Errorf(core.NotFound, "step %d.%s does not run", j.ID, step).Because("invalid_job_id")
	}
	a.Saw(who, j)
	done, err := a.Heavy(r.Context(), who)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(r.Context(), statPatience)
	defer cancel()
	told := a.Hub.Stats.Of(ctx, j, step)
	out := &client.StepUsage{Job: j.ID, Step: step, Now: a.Now(v.Snap), Nodes: []client.NodeUsage{}}
	for i := range j.Alloc.Nodes {
		name := j.Alloc.Nodes[i].Node
		u := told[name]
		if u == nil {
			if st == nil || slices.Contains(st.Nodes, name) {
				out.Silent = append(out.Silent, name)
			}
			continue
		}
		out.Nodes = append(out.Nodes, nodeUsage(name, u))
	}
	if len(out.Nodes) == 0 && step != wire.BatchStep {
		if _, err := strconv.Atoi(step); err != nil {
			return nil, core.Errorf(core.NotFound, "step %d.%s does not run", j.ID, step).Because("invalid_job_id")
		}
	}
	return out, nil
}

func nodeUsage(name core.NodeName, u *wire.Usage) client.NodeUsage {
	n := client.NodeUsage{
		Node: name, PIDs: u.PIDs, RSS: core.Bytes(u.RSS), MaxRSS: core.Bytes(u.Used.MaxRSS),
		CPU: micros(u.Used.UserCPU + u.Used.SysCPU), Tasks: []client.TaskUsage{},
	}
	for _, t := range u.Tasks {
		n.Tasks = append(n.Tasks, client.TaskUsage{
			Task: t.Task, CPU: micros(t.CPU), RSS: core.Bytes(t.RSS), MaxRSS: core.Bytes(t.MaxRSS), VM: core.Bytes(t.VM),
			MaxVM: core.Bytes(t.MaxVM), Pages: t.Pages, Read: core.Bytes(t.Read), Write: core.Bytes(t.Write),
		})
	}
	return n
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
