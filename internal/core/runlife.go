package core

// RunRules are what a YAML configuration says of its run's life: when it is started again, how long it waits, what ends
// it. A job without them lives as any other.
type RunRules struct {
	Retry *Retry `json:"retry,omitempty"`
	// StartWithin is how long an attempt may wait for its nodes before it ends for want of capacity; 0: as long as it
	// takes. Time in which it is held, or waits for other jobs or its begin time, does not count.
	StartWithin Seconds `json:"start_within,omitempty"`
	// Schedule lists when the run comes again, in the words of package cron's dialect Monday, in UTC; empty: it runs once.
	Schedule    []string        `json:"schedule,omitempty"`
	Inactivity  Seconds         `json:"inactivity,omitempty"` // it ends after so long without a connection; 0: never
	Utilization *MinUtilization `json:"utilization,omitempty"`
	// Of a run on several nodes.
	StartupOrder StartupOrder `json:"startup_order,omitempty"`
	StopCriteria StopCriteria `json:"stop_criteria,omitempty"`
}

// Retry says after which ends of an attempt a run is started again.
type Retry struct {
	NoCapacity   bool `json:"no_capacity,omitempty"`  // it found no nodes within RunRules.StartWithin
	Interruption bool `json:"interruption,omitempty"` // it was preempted, or a node failed
	Error        bool `json:"error,omitempty"`        // it failed, or a node did
	// Duration bounds a series of errors: after that long, counted from its first, there is no further attempt. An attempt
	// that ran for as long begins a new series.
	Duration Seconds `json:"duration,omitempty"`
}

// MinUtilization ends a run of which a GPU is used less than this for all of a time.
type MinUtilization struct {
	Percent int32   `json:"percent"`
	Window  Seconds `json:"window"`
}

// StartupOrder says whose commands begin first on the nodes of a run.
type StartupOrder string

// The orders.
const (
	StartAny          StartupOrder = ""              // all at once
	StartMasterFirst  StartupOrder = "master-first"  // the first node's, then those of the others
	StartWorkersFirst StartupOrder = "workers-first" // those of the others, then the first node's
)

// StopCriteria says when a run on several nodes is done.
type StopCriteria string

// The criteria.
const (
	StopAllDone    StopCriteria = ""            // when the commands on all nodes have ended
	StopMasterDone StopCriteria = "master-done" // when those of the first node have
)

// StepSSH is the name of a step that is somebody's SSH connection to a job, while that lasts.
const StepSSH = "ssh"

// RunLife is what is remembered of a run's life from one attempt to the next.
type RunLife struct {
	Trigger Time `json:"trigger,omitempty"`  // of a schedule: what it waits for, or what made the present attempt
	RetryAt Time `json:"retry_at,omitempty"` // while an attempt that failed is cleaned up: when the next may start
	// Of the present series of errors: when the first came, and how many there are.
	ErrorsSince Time  `json:"errors_since,omitempty"`
	Errors      int32 `json:"errors,omitempty"`
	Exceeded    bool  `json:"exceeded,omitempty"` // it would have been started again, and the time for that is over
	// IdleSince is since when nobody is connected, of a run with RunRules.Inactivity; 0: somebody is.
	IdleSince Time `json:"idle_since,omitempty"`
	// Ranks are the ends of the last attempt's programs on several nodes; one that is missing was ended with the others.
	Ranks []RankExit `json:"ranks,omitempty"`
}

// Rules are the job's RunRules, or nil.
func (s *Spec) Rules() *RunRules {
	if s.Extra == nil {
		return nil
	}
	return s.Extra.Rules
}

// NextTrigger is when the schedule of a run that waits starts it; 0: it waits for nothing of that kind.
func (j *Job) NextTrigger(now Time) Time {
	if j.Life == nil || j.State != Pending || j.Life.Trigger <= now {
		return 0
	}
	return j.Life.Trigger
}

// OwnLife returns j.Life as a copy that the caller may change; the record must be the caller's.
func (j *Job) OwnLife() *RunLife {
	life := &RunLife{}
	if j.Life != nil {
		*life = *j.Life
	}
	j.Life = life
	return life
}
