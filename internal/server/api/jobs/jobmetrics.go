package jobs

import (
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/samples"
)

func (a *Jobs) JobMetrics(_ http.ResponseWriter, r *http.Request, who *call.Caller) (any, error) {
	v, err := a.Viewer(who)
	if err != nil {
		return nil, err
	}
	j, err := a.One(r.Context(), v, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if err := a.May(who, j); err != nil {
		return nil, err
	}
	a.Saw(who, j)
	attempt, err := call.Number(r.URL.Query().Get("attempt"), int64(j.Attempt))
	if err != nil {
		return nil, err
	}
	done, err := a.Heavy(r.Context(), who) // a job of weeks has many of them, and all are read
	if err != nil {
		return nil, err
	}
	defer done()
	out := &client.Metrics{ID: j.ID, Attempt: int32(attempt), GPUs: []client.MetricGPU{}}
	if out.Samples, err = a.Samples.Read(samples.Key{Job: j.ID, Attempt: out.Attempt}); err != nil {
		return nil, err
	}
	if out.Samples == nil {
		out.Samples = []core.Sample{}
	}
	if j.Alloc == nil {
		return out, nil
	}
	snap := a.Engine.Snapshot()
	for i := range j.Alloc.Nodes {
		na := &j.Alloc.Nodes[i]
		out.CPUs += na.CPUs
		out.Memory += na.Mem
		n, _ := snap.Node(na.Node)
		for _, g := range na.Gres {
			for _, u := range g.Units {
				if g.Name == "gpu" {
					out.GPUs = append(out.GPUs, client.MetricGPU{Node: na.Node, Index: u, Type: g.Type, Memory: unitMemory(n, u)})
				}
			}
		}
	}
	return out, nil
}

func unitMemory(n *core.Node, index int32) core.Bytes {
	if n != nil {
		for _, u := range n.Hardware.Units {
			if u.Name == "gpu" && u.Index == index {
				return u.Memory
			}
		}
	}
	return 0
}
