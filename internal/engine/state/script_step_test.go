package state

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/jobs"
)

// stepRequest reads what a step asks for, if it asks: tasks= nodes= cpus= mem= gres= gpus= pertask= (GPUs) exact
// overlap pack overcommit. Without any of these the step is on the nodes it names, and shares them.
func (s *script) stepRequest(o args) *core.StepRequest {
	out := &core.StepRequest{MaxTasksPerNode: 512}
	asked := false
	for k, v := range o {
		switch k {
		case "tasks":
			out.Tasks = int32(s.num(v))
		case "nodes":
			out.Nodes = int32(s.num(v))
		case "cpus":
			out.CPUsPerTask = int32(s.num(v))
		case "mem":
			out.MemPerNode = s.mem(v)
		case "gres":
			if out.NoGres = v == "none"; !out.NoGres {
				out.Gres = s.gres(v)
			}
		case "gpus":
			out.GPUs = s.gres(v)
		case "pertask":
			out.GPUsPerTask = s.gres(v)
		case "exact":
			out.Exact = true
		case "overlap":
			out.Overlap = true
		case "pack":
			out.Pack = true
		case "overcommit":
			out.Overcommit = true
		default:
			continue
		}
		asked = true
	}
	if !asked {
		return nil
	}
	if v := o["on"]; v != "" {
		for n := range strings.SplitSeq(v, ",") {
			out.On = append(out.On, core.NodeName(n))
		}
	}
	return out
}

// placeStep makes a step and prints where it is: tasks on each node, and the CPUs and units it holds there.
func (s *script) placeStep(in *CreateStep) error {
	reply, err := s.w.do(in)
	if err != nil {
		return err
	}
	st, j := reply.(*StepsCreated).Steps[0], reply.(*StepsCreated).Jobs[0]
	if j.ID != st.Job || j.Attempt != st.Attempt || !jobs.HoldsNode(j, st.Nodes[0]) {
		return fmt.Errorf("the reply has step %d.%d and another job than that it was placed in: %+v", st.Job, st.ID, j)
	}
	out := fmt.Sprintf("step %d.%d", st.Job, st.ID)
	for i, n := range st.Nodes {
		out += fmt.Sprintf(" %s x%d", n, st.Tasks[i])
		if len(st.Holds) > 0 {
			h := &st.Holds[i]
			out += fmt.Sprint(" cpus ", h.Cores)
			for _, g := range h.Gres {
				out += fmt.Sprint(" ", g.Name, " ", g.Units)
			}
		}
	}
	s.printf("%s", out)
	return nil
}
