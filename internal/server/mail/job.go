package mail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/engine/state"
)

// allKinds is what ALL stands for.
var allKinds = []string{"BEGIN", "END", "FAIL", "INVALID_DEPEND", "REQUEUE", "STAGE_OUT"}

// wants reports whether a job's owner wants to learn of this.
func wants(j *core.Job, kind string) bool {
	for w := range strings.SplitSeq(j.Spec.More().MailTypes, ",") {
		if w == kind || w == "ALL" && slices.Contains(allKinds, kind) {
			return true
		}
	}
	return false
}

// summary is what is known of an array whose owner wants to learn of it as a whole.
type summary struct {
	began     bool
	states    []core.JobState
	low, high int32 // exit codes
	ended     int
}

// handleEvent writes what there is to write of one event.
func (s *Sender) handleEvent(kind core.EventKind, j *core.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j.Array != nil && !wants(j, "ARRAY_TASKS") {
		s.handleArrayEvent(kind, j)
		return
	}
	switch kind {
	case core.JobStarted:
		s.setAlarmsLocked(j)
		if wants(j, "BEGIN") {
			s.enqueue(j, "BEGIN", fmt.Sprintf("%s Began, Queued time %s", title(j),
				clock(j.Start.Sub(max(j.Submit, j.Eligible)))))
		}
	case core.JobRequeued:
		s.stopAlarms(j.ID)
		if wants(j, "REQUEUE") {
			s.enqueue(j, "REQUEUE", title(j)+" Requeued, Run time "+clock(s.ran(j)))
		}
		delete(s.started, j.ID)
	case core.JobEnded:
		s.stopAlarms(j.ID)
		defer delete(s.started, j.ID)
		failed := j.State != core.Completed
		if j.State == core.Timeout && wants(j, "TIME_LIMIT") {
			s.enqueue(j, "TIME_LIMIT", title(j)+" Reached time limit, Run time "+clock(j.End.Sub(j.Start)))
		}
		switch {
		case failed && wants(j, "FAIL"):
			s.enqueue(j, "FAIL", title(j)+" Failed, "+outcome(j))
		case wants(j, "END"):
			s.enqueue(j, "END", title(j)+" Ended, "+outcome(j))
		}
	default: // nobody is told
	}
}

// handleArrayEvent counts what happens to the tasks of an array and tells of the first start and the last end.
func (s *Sender) handleArrayEvent(kind core.EventKind, j *core.Job) {
	base := j.Array.Base
	sum := s.arrays[base]
	if sum == nil {
		sum = &summary{}
		s.arrays[base] = sum
	}
	switch kind {
	case core.JobStarted:
		if !sum.began && wants(j, "BEGIN") {
			s.enqueue(j, "BEGIN", fmt.Sprintf("%s Began, Queued time %s", arrayTitle(j),
				clock(j.Start.Sub(max(j.Submit, j.Eligible)))))
		}
		sum.began = true
		s.started[j.ID] = j.Start
	case core.JobRequeued:
		if wants(j, "REQUEUE") {
			s.enqueue(j, "REQUEUE", arrayTitle(j)+" Requeued, Run time "+clock(s.ran(j)))
		}
		delete(s.started, j.ID)
	case core.JobEnded:
		if sum.ended == 0 || j.Exit.Code < sum.low {
			sum.low = j.Exit.Code
		}
		sum.high = max(sum.high, j.Exit.Code)
		if sum.ended++; !slices.Contains(sum.states, j.State) {
			sum.states = append(sum.states, j.State)
		}
		s.endedTasks = append(s.endedTasks, j)
		delete(s.started, j.ID)
	default: // nobody is told
	}
}

// notifyEndedArrays tells of arrays of which the last task has ended in this transaction.
func (s *Sender) notifyEndedArrays(snap *state.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	live := func(j *core.Job) bool { return !j.State.Final() }
	for _, j := range s.endedTasks {
		base := j.Array.Base
		sum := s.arrays[base]
		if first, ok := snap.Job(base); sum == nil || ok && live(first) || slices.ContainsFunc(snap.Tasks(base), live) {
			continue
		}
		delete(s.arrays, base)
		word, verb, why := "Mixed", "Ended", "END"
		if len(sum.states) == 1 {
			word = sum.states[0].String()
		}
		if slices.ContainsFunc(sum.states, func(st core.JobState) bool { return st != core.Completed }) && wants(j, "FAIL") {
			verb, why = "Failed", "FAIL"
		}
		if wants(j, why) {
			s.enqueue(j, why, fmt.Sprintf("%s %s, %s, ExitCode [%d-%d]", arrayTitle(j), verb, word, sum.low, sum.high))
		}
	}
	s.endedTasks = s.endedTasks[:0]
}

// notifyNeverStarts tells once that what a job waits for cannot happen any more.
func (s *Sender) notifyNeverStarts(j *core.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.neverStartsSent[j.ID] || !wants(j, "INVALID_DEPEND") {
		return
	}
	if s.neverStartsSent == nil || len(s.neverStartsSent) > maxWaiting {
		s.neverStartsSent = map[core.JobID]bool{}
	}
	s.neverStartsSent[j.ID] = true
	s.enqueue(j, "INVALID_DEPEND", title(j)+" Invalid dependency")
}

// ran is how long a job has run that was just requeued.
func (s *Sender) ran(j *core.Job) time.Duration {
	if start := s.started[j.ID]; start != 0 {
		return time.Since(start.Go())
	}
	return 0
}

// title begins a subject.
func title(j *core.Job) string {
	if a := j.Array; a != nil {
		return fmt.Sprintf("Slurm Array Task Job_id=%d_%d (%d) Name=%s", a.Base, a.Task, j.ID, j.Spec.Name)
	}
	return fmt.Sprintf("Slurm Job_id=%d Name=%s", j.ID, j.Spec.Name)
}

func arrayTitle(j *core.Job) string {
	return fmt.Sprintf("Slurm Array Summary Job_id=%d_* (%d) Name=%s", j.Array.Base, j.Array.Base, j.Spec.Name)
}

// outcome is how a job ended.
func outcome(j *core.Job) string {
	var ran time.Duration
	if j.Start != 0 && j.End > j.Start {
		ran = j.End.Sub(j.Start)
	}
	return fmt.Sprintf("Run time %s, %s, ExitCode %d", clock(ran), j.State, j.Exit.Code)
}

func clock(d time.Duration) string { return grammar.FormatClock(int64(max(0, d) / time.Second)) }

// timeLimitMarks are the parts of a time limit that one may want to learn of.
var timeLimitMarks = []struct {
	kind string
	part int64
}{{"TIME_LIMIT_50", 50}, {"TIME_LIMIT_80", 80}, {"TIME_LIMIT_90", 90}}

func (s *Sender) setAlarms(j *core.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setAlarmsLocked(j)
}

// setAlarmsLocked has the owner told when parts of the time limit are over.
func (s *Sender) setAlarmsLocked(j *core.Job) {
	s.stopAlarms(j.ID)
	s.started[j.ID] = j.Start
	limit := j.Spec.TimeLimit
	if limit <= 0 || limit >= core.Forever {
		return
	}
	for _, m := range timeLimitMarks {
		left := time.Until(j.Start.Go().Add(limit.Duration() * time.Duration(m.part) / 100))
		if !wants(j, m.kind) || left <= 0 {
			continue
		}
		s.alarms[j.ID] = append(s.alarms[j.ID], time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.enqueue(j, m.kind, fmt.Sprintf("%s Reached %d%% of time limit, Run time %s", title(j), m.part,
				clock(time.Since(j.Start.Go()))))
		}))
	}
}

func (s *Sender) stopAlarms(id core.JobID) {
	for _, t := range s.alarms[id] {
		t.Stop()
	}
	delete(s.alarms, id)
}
