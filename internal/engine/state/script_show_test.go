package state

import (
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/sched"
)

func label(j *core.Job) string {
	if ref := j.Spec.More().Het; ref != nil {
		return fmt.Sprintf("%d (%d+%d) %s", j.ID, ref.Lead, ref.Offset, j.Spec.Name)
	}
	if j.Array == nil {
		return fmt.Sprintf("%d %s", j.ID, j.Spec.Name)
	}
	if j.IsArray() {
		return fmt.Sprintf("%d (%d_%s) %s", j.ID, j.Array.Base, grammar.FormatArray(j.Array.Tasks, int(j.Spec.Throttle), 64),
			j.Spec.Name)
	}
	return fmt.Sprintf("%d (%d_%d) %s", j.ID, j.Array.Base, j.Array.Task, j.Spec.Name)
}

// allocText tells what a job has: n1(0-1 2G gpu:a100:0) n2(…)
func allocText(j *core.Job) string {
	var b strings.Builder
	for i := range j.Alloc.Nodes {
		na := &j.Alloc.Nodes[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s(%s", na.Node, ints(na.Cores))
		if na.Tasks > 1 {
			fmt.Fprintf(&b, " tasks %d", na.Tasks)
		}
		if na.Mem > 0 {
			fmt.Fprintf(&b, " %dM", na.Mem/core.MiB)
		}
		for _, g := range na.Gres {
			fmt.Fprintf(&b, " %s:%s:%s", g.Name, g.Type, ints(g.Units))
		}
		if na.Done {
			b.WriteString(" clean")
		}
		b.WriteByte(')')
	}
	return b.String()
}

func ints(list []int32) string {
	v := make([]int, len(list))
	for i, n := range list {
		v[i] = int(n)
	}
	return taskset.Of(v...).String()
}

var flagNames = []struct {
	f core.JobFlag
	n string
}{
	{core.Completing, "completing"},
	{core.Requeueing, "requeueing"},
	{core.RequeueHold, "to-be-held"},
	{core.CancelAsked, "cancelled"},
	{core.HeldUser, "held"},
	{core.HeldAdmin, "held-by-admin"},
	{core.HeldRequeues, "held-after-requeue"},
}

func (s *script) queue(_ []string, _ args) error {
	plan := s.w.p.Pass(s.w.now)
	n := 0
	for j := range s.w.st.Snapshot().Jobs() {
		n++
		state := j.State.Short()
		for _, f := range flagNames {
			if j.Flags.Has(f.f) {
				state += "," + f.n
			}
		}
		where := ""
		if j.Alloc != nil {
			where = allocText(j)
		}
		if j.State == core.Pending {
			where = "(" + plan.Reason(j).Code.String() + ")"
			if j.Needs != nil {
				where += " " + j.Needs.String()
			}
			if slices.ContainsFunc(plan.Starts, func(st sched.Start) bool { return st.Job == j.ID }) {
				where = "(starts)"
			}
		}
		s.printf("%s  %s  %s", label(j), state, where)
	}
	if n == 0 {
		s.printf("empty")
	}
	return nil
}

func (s *script) why(p []string, _ args) error {
	j, err := s.w.st.rec.LiveJob(s.id(p[0]))
	if err == nil {
		w := s.w.p.Pass(s.w.now).Reason(j)
		s.printf("%s: %s", w.Code, w.Text)
	}
	return err
}

// ended shows jobs that left memory since the last time.
func (s *script) ended(_ []string, _ args) error {
	for _, id := range s.ids {
		j := s.seen[id]
		s.printf("%s  %s  %d:%d  %v  %s %s", label(j), j.State, j.Exit.Code, j.Exit.Signal, j.Elapsed(s.w.now), j.Reason,
			j.Message)
	}
	s.ids = nil
	return nil
}

func (s *script) steps(p []string, _ args) error {
	id := s.id(p[0])
	for n := int32(0); ; n++ {
		st := s.w.disk.steps[[2]int64{int64(id), int64(n)}]
		if st == nil {
			return nil
		}
		s.printf("%d.%d  %s  %d:%d  left %d  %s", id, st.ID, st.State, st.Exit.Code, st.Exit.Signal, st.Left, st.Message)
	}
}

// events shows what happened since the last time.
func (s *script) events(_ []string, _ args) error {
	for _, e := range s.log[s.told:] {
		t := string(e.Kind)
		if e.Job != 0 {
			t += fmt.Sprintf(" %d", e.Job)
		}
		if e.Node != "" {
			t += " " + string(e.Node)
		}
		if e.By != "" {
			t += " by " + string(e.By)
		}
		if len(e.Data) > 0 {
			t += " " + string(e.Data)
		}
		s.printf("%s", t)
	}
	s.told = int64(len(s.log))
	return nil
}

func (s *script) use(_ []string, _ args) error {
	uses := s.w.st.Snapshot().Uses()
	for n := range s.w.st.Snapshot().Nodes() {
		u := uses[n.Name]
		if u == nil {
			u = &NodeUse{}
		}
		t := fmt.Sprintf("%s  %d/%d cpus  %d/%dM", n.Name, u.CPUs, n.Hardware.CPUs, u.Mem/core.MiB,
			n.Hardware.Memory/core.MiB)
		for _, g := range u.Gres {
			t += fmt.Sprintf("  %s:%s:%d", g.Name, g.Type, g.Count)
		}
		if n.Flags != 0 {
			t += "  " + n.Flags.String()
		}
		if n.Reason != "" {
			t += "  " + n.Reason
		}
		s.printf("%s", t)
	}
	return nil
}
