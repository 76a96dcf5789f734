package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

func init() {
	commands["start"] = (*script).start
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
