package state

import (
	"maps"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
)

func init() { // after script_test.go's
	commands["ails"] = (*script).ails
	commands["earlier"] = (*script).earlier
}

// earlier JOB: what is kept of the attempts that went back to the queue.
func (s *script) earlier(p []string, _ args) error {
	j, err := s.w.st.rec.LiveJob(s.id(p[0]))
	if err != nil || j.Earlier == nil {
		return err
	}
	for i := range j.Earlier.Attempts {
		a := &j.Earlier.Attempts[i]
		s.printf("attempt %d  %s  %d:%d  %v on %s  %s", a.Attempt, a.State, a.Exit.Code, a.Exit.Signal, a.End.Sub(a.Start),
			live.NodeList(a.Alloc), a.Message)
	}
	return nil
}

// ails NODE [CHECK=TEXT…] [warn=yes] [stay=yes]: the node tells what is wrong with it; without any all is well. stay:
// it does not come back by itself.
func (s *script) ails(p []string, o args) error {
	in := &NodeHealth{Node: core.NodeName(p[0]), Return: o["stay"] == ""}
	for _, check := range slices.Sorted(maps.Keys(o)) {
		if check != "stay" && check != "warn" && check != "" {
			in.Faults = append(in.Faults,
				core.NodeFault{Check: check, Text: strings.ReplaceAll(o[check], "_", " "), Drain: o["warn"] == ""})
		}
	}
	_, err := s.w.do(in)
	return err
}

// powerConfig sets how nodes sleep: suspend= suspend_timeout= resume_timeout= reboot_timeout= awake= return=
func (s *script) powerConfig(k, v string) bool {
	p := &s.cfg.Power
	seconds := func(into *core.Seconds) bool { *into = core.Seconds(s.dur(v) / time.Second); return true }
	switch k {
	case "suspend":
		return seconds(&p.SuspendTime)
	case "suspend_timeout":
		return seconds(&p.SuspendTimeout)
	case "resume_timeout":
		return seconds(&p.ResumeTimeout)
	case "reboot_timeout":
		return seconds(&p.RebootTimeout)
	case "awake":
		p.Except = v
	case "return":
		p.Return = v == "yes"
	default:
		return false
	}
	return true
}

// after reads how long a node is to be out of service.
func (s *script) after(v string) core.Seconds {
	switch v {
	case "":
		return 0
	case "never":
		return -1
	}
	return core.Seconds(s.dur(v) / time.Second)
}
