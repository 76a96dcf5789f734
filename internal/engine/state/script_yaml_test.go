package state

import (
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

func init() {
	commands["run"] = (*script).runRules
	commands["unused"] = (*script).unused
	commands["attempts"] = (*script).attempts
}

// run NAME … retry=error,interruption,no-capacity for=1h within=10m cron=0_3_*_*_* inactive=1h minuse=50@10m: a YAML
// run with rules; other words are those of submit.
func (s *script) runRules(p []string, o args) error {
	rules := &core.RunRules{}
	seconds := func(v string) core.Seconds { return core.Seconds(s.dur(v) / time.Second) }
	rest := args{"run": p[0]}
	for k, v := range o {
		switch k {
		case "retry":
			r := &core.Retry{Duration: 3600}
			for event := range strings.SplitSeq(v, ",") {
				switch event {
				case "error":
					r.Error = true
				case "interruption":
					r.Interruption = true
				case "no-capacity":
					r.NoCapacity = true
				default:
					s.t.Fatalf("retry=%s?", event)
				}
			}
			rules.Retry = r
		case "within":
			rules.StartWithin = seconds(v)
		case "cron":
			for line := range strings.SplitSeq(v, ";") {
				rules.Schedule = append(rules.Schedule, strings.ReplaceAll(line, "_", " "))
			}
		case "inactive":
			rules.Inactivity = seconds(v)
		case "minuse":
			percent, window, _ := strings.Cut(v, "@")
			rules.Utilization = &core.MinUtilization{Percent: int32(s.num(percent)), Window: seconds(window)}
		case "for":
		default:
			rest[k] = v
		}
	}
	if v := o["for"]; v != "" {
		rules.Retry.Duration = seconds(v)
	}
	spec := s.spec(p[0], rest)
	x := *spec.More()
	x.Rules, spec.Extra = rules, &x
	return s.send(spec, rest)
}

// unused JOB for=10m: a GPU of it has been used too little for so long.
func (s *script) unused(p []string, o args) error {
	j, ok := s.w.st.rec.Job(s.id(p[0]))
	if !ok {
		return core.Errorf(core.NotFound, "no job %s", p[0])
	}
	_, err := s.w.do(&GPUUnused{
		Job: j.ID, Attempt: j.Attempt, Node: j.Alloc.Nodes[0].Node, Since: s.w.now.Add(-s.dur(o["for"])),
	})
	return err
}

// attempts JOB: what ended each attempt of a run, and the run; and when the next may start.
func (s *script) attempts(p []string, _ args) error {
	j := s.seen[s.id(p[0])]
	if j == nil {
		return core.Errorf(core.NotFound, "no job %s", p[0])
	}
	if j.Earlier != nil {
		for i := range j.Earlier.Attempts {
			a := &j.Earlier.Attempts[i]
			old := j.As(a)
			s.printf("attempt %d  %s", a.Attempt, old.Termination())
		}
	}
	switch {
	case j.NextTrigger(s.w.now) != 0:
		s.printf("triggered %s", j.NextTrigger(s.w.now).Go().UTC().Format("Mon 15:04"))
	case j.State == core.Pending && j.Eligible > s.w.now:
		s.printf("waits %v", j.Eligible.Sub(s.w.now))
	case j.State == core.Pending:
		s.printf("waits for nodes")
	case !j.State.Final():
		s.printf("attempt %d  runs", j.Attempt)
	default:
		s.printf("attempt %d  %s", j.Attempt, j.Termination())
		if t := j.RunTermination(); t != core.EndNone {
			s.printf("run  %s", t)
		}
	}
	return nil
}
