package state

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

func init() {
	commands["start"] = (*script).start
	commands["het"] = (*script).het
}

// start tells when each pending job should start, as squeue --start does: after how long, where if that is known, and
// "about" if it is a forecast.
func (s *script) start(_ []string, _ args) error {
	plan := s.w.p.Pass(s.w.now)
	f := s.w.p.Forecast(plan)
	for !f.Step(1000) {
	}
	plan = plan.With(f)
	for j := range s.w.st.Snapshot().Jobs() {
		if j.State != core.Pending {
			continue
		}
		w := plan.Why(j)
		text := "not known"
		switch {
		case slices.ContainsFunc(plan.Starts, func(st sched.Start) bool { return st.Job == j.ID }):
			text = "now"
		case w.Estimate:
			text = "in about " + w.Expected.Sub(s.w.now).String()
		case w.Expected != 0:
			text = "in " + w.Expected.Sub(s.w.now).String()
		}
		if on := plan.Nodes(j.ID); on != nil {
			text += fmt.Sprint(" on ", on)
		}
		s.printf("%s  %s  (%s)", label(j), text, w.Reason)
	}
	return nil
}

// het NAME … 1=cpus:2,time:1h 2=…: a het job; the numbered options are those of its other components.
func (s *script) het(p []string, o args) error {
	first, parts := args{}, map[string]args{}
	for k, v := range o {
		if _, err := strconv.Atoi(k); err != nil {
			first[k] = v
			continue
		}
		parts[k] = args{"user": o["user"]}
		for item := range strings.SplitSeq(v, ",") {
			name, value, _ := strings.Cut(item, ":")
			parts[k][name] = value
		}
	}
	lead := s.spec(p[0], first)
	in := &Submit{By: core.Identity{User: lead.User, UID: lead.UID}, Spec: lead, Strict: o["strict"] != ""}
	for k := 1; parts[strconv.Itoa(k)] != nil; k++ {
		in.Components = append(in.Components, s.spec(p[0], parts[strconv.Itoa(k)]))
	}
	reply, err := s.w.do(in)
	if err == nil {
		s.printf("job %d with %d components", reply.(*Submitted).ID, 1+len(in.Components))
	}
	return err
}
