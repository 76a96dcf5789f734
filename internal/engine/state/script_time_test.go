package state

import (
	"fmt"
	"time"

	"bireme.dev/bireme/internal/core"
)

func init() { // after script_test.go's
	commands["licenses"] = (*script).licenses
	commands["expect"] = (*script).expect
	commands["user"] = (*script).users
	for _, w := range []string{"timemin", "deadline", "late", "reach"} {
		wishWords[w] = true
	}
}

// times reads what a job says of time: timemin=10m deadline=2h (from now) reach (into reservations).
func (s *script) times(x *core.Extra, o args) bool {
	if v := o["timemin"]; v != "" {
		x.TimeMin = core.Seconds(s.dur(v) / time.Second)
	}
	if v := o["deadline"]; v != "" {
		x.Deadline, x.LateAccepted = s.w.now.Add(s.dur(v)), o["late"] != ""
	}
	if o["reach"] != "" {
		x.Signal = &core.WarnSignal{Signal: 10, Before: 60, Reserve: true}
	}
	return x.TimeMin != 0 || x.Deadline != 0 || x.Signal != nil || x.Reservation != "" || o["reservation"] != ""
}

// besideText tells what a job has beside its nodes, and its limit if that was cut.
func besideText(j *core.Job) (t string) {
	if in := j.Alloc.Inside(); in != "" {
		t += " in " + in
	}
	for _, l := range j.Alloc.Licenses() {
		t += fmt.Sprintf(" with %s:%d", l.Name, l.Total)
	}
	if j.Spec.More().TimeAsked != 0 {
		t += fmt.Sprintf(" for %v", j.Spec.TimeLimit.Duration())
	}
	return t
}

func (s *script) licenses(_ []string, _ args) error {
	for _, l := range s.w.st.Snapshot().Licenses() {
		s.printf("%s  %d of %d in use, %d reserved", l.Name, l.Used, l.Total, l.Reserved)
	}
	return nil
}

// expect JOB: when the plan says it starts, from now.
func (s *script) expect(p []string, _ args) error {
	for _, id := range p {
		j, err := s.w.st.rec.LiveJob(s.id(id))
		if err != nil {
			return err
		}
		if at, _, ok := s.w.p.Pass(s.w.now).Expected(j.ID); ok {
			s.printf("%s in %v", id, at.Sub(s.w.now))
		} else {
			s.printf("%s: the plan does not say", id)
		}
	}
	return nil
}

// user NAME…: they are known.
func (s *script) users(p []string, _ args) error {
	for _, name := range p {
		s.user(core.UserName(name))
	}
	return nil
}
