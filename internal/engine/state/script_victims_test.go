package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

func init() { // after script_test.go's
	commands["preemption"] = (*script).preemption
	commands["pushed"] = (*script).pushed
}

// preemption TYPE mode= grace= exempt= order= : who may push whom aside, before anything else happens.
func (s *script) preemption(p []string, o args) error {
	c := core.Preemption{
		Type: core.PreemptType(p[0]), Mode: core.PreemptMode(o["mode"]),
		Order: core.PreemptOrder(o["order"]),
	}
	if v := o["grace"]; v != "" {
		c.Grace = core.Seconds(s.dur(v) / time.Second)
	}
	if v := o["exempt"]; v != "" {
		c.Exempt = core.Seconds(s.dur(v) / time.Second)
	}
	s.cfg.Preemption = c
	return nil
}

// planned prints what a pass does to jobs that run.
func (s *script) planned(p *sched.Plan) {
	for _, x := range p.Preempts {
		v := s.seen[x.Job]
		t := fmt.Sprintf("push %s aside for %s: %s", label(v), label(s.seen[x.For]), v.Pushed.Mode)
		if g := v.Stop.Grace; g > 0 {
			t += fmt.Sprintf(", KILL in %v", g.Duration())
		}
		s.printf("%s", t)
	}
	for _, st := range p.Starts {
		for _, x := range st.Suspends {
			var lent []string
			for _, l := range x.Lent {
				lent = append(lent, fmt.Sprintf("%s(%s)", l.Node, ints(l.Cores)))
			}
			s.printf("suspend %s for %s, which uses %s", label(s.seen[x.Job]), label(s.seen[st.Job]), strings.Join(lent, " "))
		}
	}
}

// pushed shows the jobs that were preempted, or that others left for.
func (s *script) pushed(_ []string, _ args) error {
	for j := range s.w.st.Snapshot().Jobs() {
		t := label(j) + "  " + j.State.Short()
		if p := j.Pushed; p != nil {
			t += fmt.Sprintf("  preempted %d time(s), by %d", p.Times, p.For)
			lent := slices.Clone(p.Lent)
			for _, l := range lent {
				t += fmt.Sprintf("  %d uses %s(%s)", l.To, l.Node, ints(l.Cores))
			}
		}
		if j.Room != nil {
			t += "  room is made for it"
		}
		if j.Pushed != nil || j.Room != nil {
			s.printf("%s", t)
		}
	}
	return nil
}
