// Package conf has the settings that the rules of package state go by. They come from the config file; recordings have
// them as JSON, so fields keep their names.
package conf

import (
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/policy"
)

// Config is what admission and the life cycle go by. It comes from the config file.
type Config struct {
	Partitions      []core.Partition
	DefaultProject  core.ProjectName
	DefMemPerCPU    core.Bytes // 0: jobs that ask for none get none counted
	EnforceProjects bool       `json:"EnforceAccounts"` // users must be members of a project to submit to it
	EnforceQOS      bool       // a QOS that is named must be there and be one that its user may use
	NoLimits        bool       // limits that are defined are not enforced
	Safe            bool       // a job starts only if limits on minutes have room for all of its time
	StrictSubmit    bool
	Rule            core.Rule      // how jobs behind one that cannot start may
	Reservations    int32          // jobs of each queue that are promised a start; 0: as the rule has it
	Select          core.AllocUnit // what of a node's CPUs is given whole
	MaxArraySize    int32          // largest array index + 1
	MaxJobs         int            // live jobs, array tasks counted one by one
	// Bounds on what one user who is no administrator may have; 0: none.
	JobsPerUser       int `json:",omitempty"` // live jobs; an array and its tasks that have not started are one
	ArrayTasksPerUser int `json:",omitempty"` // tasks of arrays that have not started
	CronJobsPerUser   int `json:",omitempty"` // live jobs that recur
	TrialsPerUser     int `json:",omitempty"` // jobs that are tried at once
	StepsPerJob       int `json:",omitempty"` // numbered steps of a job, for everybody
	KeyWindow         int // submit keys remembered in memory
	MaxRequeues       int32
	// RequeueExit are the exit codes with which a batch job goes back to the queue, RequeueExitHold those with which it
	// is held there.
	RequeueExit, RequeueExitHold []int32      `json:",omitempty"`
	RequeueDelay                 core.Seconds `json:",omitempty"` // before a job that went back may start again
	KillInvalidDep               bool         `json:",omitempty"` // a job that does not say so ends with its dependency
	MaxTokens                    int          // of a user that work; 0: any number
	MaxKillGrace                 core.Seconds // the most a job may ask for between TERM and KILL
	// InteractiveIdle is how long an allocation may stand without ever having had a step; its creator is gone then. 0: for
	// ever.
	InteractiveIdle core.Seconds
	Priority        *Priority      // nil: first come, first served
	Topology        *core.Topology // how the network joins nodes; nil: nobody says
	MaxSwitchWait   core.Seconds   // the most a job may wait for few switches; 0: 300
	Licenses        []core.License // there are, by name
	Offers          []core.Offer   // nodes that could be had, by name
	ResumeTime      core.Seconds   // how long a node takes to power up, where it does not say
	Power           Power
	Zone            Zone // whose days reservations come again by
	// ReservationOverrun is how long what runs in a reservation may go on after its end; Forever: as long as it likes.
	ReservationOverrun core.Seconds
	Charges            Charges
	RunWeight          int64 // what a YAML run's priority of 100 adds to its job's
	Containers         core.ContainerRules
	Volumes            []storage.Class `json:",omitempty"` // kinds of network volumes, by name
	Preemption         core.Preemption // which jobs may preempt which, beside what QOS and partitions say
	// Unkept says that nobody stores or watches what changes, as in a simulation: no event is written, and Flush returns
	// no jobs.
	Unkept bool
	// FaultForTests is called with every job that the planner begins to work on. A test's may panic there.
	FaultForTests func(*core.Job) `json:"-"`
	// PutFaultForTests is called with every record that changes, in the middle of its change. A test's may panic there.
	PutFaultForTests func(*core.Job) `json:"-"`
}

// Zone is a time zone; the zero one is UTC. A recording names it, and whoever replays it must know it by that name.
type Zone struct{ *time.Location }

// MarshalText writes its name.
func (z Zone) MarshalText() ([]byte, error) {
	if z.Location == nil {
		return []byte("UTC"), nil
	}
	return []byte(z.String()), nil
}

// UnmarshalText finds the zone of a name.
func (z *Zone) UnmarshalText(b []byte) (err error) {
	z.Location, err = time.LoadLocation(string(b))
	return err
}

// SetDefaults fills in what was left open.
func (c *Config) SetDefaults() {
	if c.DefaultProject == "" {
		c.DefaultProject = "default"
	}
	if c.MaxArraySize == 0 {
		c.MaxArraySize = 4_000_001
	}
	if c.MaxJobs == 0 {
		c.MaxJobs = 5_000_000
	}
	if c.KeyWindow == 0 {
		c.KeyWindow = 200_000
	}
	if c.MaxKillGrace == 0 {
		c.MaxKillGrace = 600
	}
	if c.MaxRequeues == 0 {
		c.MaxRequeues = 5
	}
	if c.ResumeTime == 0 {
		c.ResumeTime = 60
	}
	if c.MaxSwitchWait == 0 {
		c.MaxSwitchWait = 300
	}
	if len(c.Partitions) == 0 {
		c.Partitions = []core.Partition{{Name: "main", Nodes: "ALL", Default: true}}
	}
}

// Priority is how priorities are worked out. A state without one gives every job the same, less nice.
type Priority struct {
	policy.Config
	Damp   int64        // of classic fair-share; 0: 1
	Period core.Seconds // between two calculations of all jobs; 0: five minutes
}

// Power says when nodes go to sleep, and how long they may take to do so, to be back, or to restart.
type Power struct {
	SuspendTime    core.Seconds         // a node that has been idle for so long is put to sleep; 0: never
	SuspendTimeout core.Seconds         // that it takes to sleep; 0: no time
	ResumeTimeout  core.Seconds         // within which one that is woken must be there; 0: whenever it is
	RebootTimeout  core.Seconds         // likewise, one that restarts
	Except         string               // nodes that are not put to sleep by themselves
	ExceptParts    []core.PartitionName // whose nodes are not, either
	Wakes          bool                 // somebody wakes nodes: they are when a job needs them
	Return         bool                 // a node that was late for that is back in service when it comes
}

// Charges is how usage is counted.
type Charges struct {
	HalfLife core.Seconds // of usage; 0: it is kept forever
	Reset    policy.ResetPeriod
	Billing  map[core.PartitionName][]policy.Weight
	Flags    policy.Flag // of them, those on billing
}
