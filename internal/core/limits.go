package core

// Limits are what an association (a project, or a user in one) or a QOS allows. A nil count and a resource that is not
// named are not limited.
type Limits struct {
	GrpJobs        *int64 `json:"grp_jobs,omitempty"`
	GrpSubmit      *int64 `json:"grp_submit,omitempty"`
	GrpJobsAccrue  *int64 `json:"grp_jobs_accrue,omitempty"` // pending jobs whose priority grows with age
	GrpTRES        TRES   `json:"grp_tres,omitempty"`
	GrpTRESMins    TRES   `json:"grp_tres_mins,omitempty"`
	GrpTRESRunMins TRES   `json:"grp_tres_run_mins,omitempty"`
	GrpWall        *int64 `json:"grp_wall,omitempty"` // minutes

	MaxJobs           *int64 `json:"max_jobs,omitempty"` // of an association: of each of its users
	MaxSubmit         *int64 `json:"max_submit,omitempty"`
	MaxJobsAccrue     *int64 `json:"max_jobs_accrue,omitempty"`
	MaxTRESPerJob     TRES   `json:"max_tres_per_job,omitempty"`
	MaxTRESPerNode    TRES   `json:"max_tres_per_node,omitempty"`
	MaxTRESMinsPerJob TRES   `json:"max_tres_mins_per_job,omitempty"`
	MaxWall           *int64 `json:"max_wall,omitempty"` // minutes a job
	// MaxTRESRunMins is of associations. It is kept and shown and, as in Slurm, not enforced.
	MaxTRESRunMins TRES `json:"max_tres_run_mins,omitempty"`
	// priority below which a job gets no reservation
	MinPrioThreshold *int64 `json:"min_prio_threshold,omitempty"`
}

// QOS is a quality of service: a priority, limits, and the QOS whose jobs its jobs may preempt. It comes from the
// store.
type QOS struct {
	Name        QOSName `json:"name"`
	ID          int64   `json:"id,omitempty"` // among QOS; the state gives it
	Description string  `json:"description,omitempty"`
	Created     Time    `json:"created,omitempty"`
	Priority    uint32  `json:"priority,omitempty"`
	Flags       QOSFlag `json:"flags,omitempty"`
	Limits      Limits  `json:"limits,omitzero"` // MaxJobs and MaxSubmit of it are a user's

	MaxJobsPerProject   *int64   `json:"max_jobs_per_account,omitempty"`
	MaxSubmitPerProject *int64   `json:"max_submit_per_account,omitempty"`
	MaxTRESPerUser      TRES     `json:"max_tres_per_user,omitempty"`
	MaxTRESPerProject   TRES     `json:"max_tres_per_account,omitempty"`
	MaxRunMinsPerUser   TRES     `json:"max_tres_run_mins_per_user,omitempty"`
	MaxRunMinsPerAcct   TRES     `json:"max_tres_run_mins_per_account,omitempty"`
	MinTRESPerJob       TRES     `json:"min_tres_per_job,omitempty"`
	MaxAccruePerProject *int64   `json:"max_jobs_accrue_per_account,omitempty"`
	UsageFactor         *float64 `json:"usage_factor,omitempty"`    // nil: 1
	UsageThreshold      float64  `json:"usage_threshold,omitempty"` // fair-share a job needs with EnforceUsageThreshold
	LimitFactor         float64  `json:"limit_factor,omitempty"`    // 0: 1; multiplies the TRES limits of associations

	Preempt       []QOSName   `json:"preempt,omitempty"`        // whose jobs its jobs may preempt
	PreemptMode   PreemptMode `json:"preempt_mode,omitempty"`   // how its jobs are preempted; empty: the cluster's
	Grace         Seconds     `json:"grace,omitempty"`          // for its jobs, when they are
	PreemptExempt Seconds     `json:"preempt_exempt,omitempty"` // its jobs run so long before they may be
}

// Factor is what usage with the QOS counts.
func (q *QOS) Factor() float64 {
	if q == nil || q.UsageFactor == nil {
		return 1
	}
	return *q.UsageFactor
}

// QOSFlag changes how a QOS is enforced.
type QOSFlag uint16

// The flags.
const (
	DenyOnLimit           QOSFlag = 1 << iota // what can never fit is refused at submit
	EnforceUsageThreshold                     // jobs wait while their fair-share is below UsageThreshold
	NoDecay                                   // its usage is kept
	OverPartQOS                               // the job's QOS before the partition's
	Relative                                  // TRES limits are percent of the cluster
	NoReserve                                 // its jobs get no reservation in the plan
	RequiresReservation                       // its jobs need an advance reservation
	PartitionMaxNodes                         // its jobs may exceed the partition's MaxNodes
	PartitionMinNodes                         // its jobs may stay below the partition's MinNodes
	PartitionTimeLimit                        // its jobs may exceed the partition's time limit
	UsageFactorSafe                           // limits are safe with the usage factor applied
)

// PreemptMode says what happens to a job that is preempted.
type PreemptMode string

// The modes.
const (
	PreemptDefault PreemptMode = ""
	PreemptOff     PreemptMode = "off"
	PreemptCancel  PreemptMode = "cancel"
	PreemptRequeue PreemptMode = "requeue"
	PreemptSuspend PreemptMode = "suspend"
	PreemptWithin  PreemptMode = "within" // also among jobs of the same QOS, by priority
)

// Association is what a project, or a member of one, carries beside its shares.
type Association struct {
	Limits     Limits    `json:"limits,omitzero"`
	Priority   uint32    `json:"priority,omitempty"`
	QOS        []QOSName `json:"qos,omitempty"` // that may be used; empty: as above it, and all where nobody says
	DefaultQOS QOSName   `json:"default_qos,omitempty"`
}

// License is a count of something that belongs to no node: a seat of a program, a slot of a file system.
type License struct {
	Name  string `json:"name"`
	Total int64  `json:"total"`
}

// AdvanceReservation sets nodes, cores or licenses aside for some people for some time. It comes from the store.
type AdvanceReservation struct {
	Name      string        `json:"name"`
	ID        int64         `json:"id"`
	Created   Time          `json:"created,omitempty"`
	Start     Time          `json:"start"`
	End       Time          `json:"end"`
	Nodes     string        `json:"nodes,omitempty"` // hostlist of the nodes it has
	NodeCount int32         `json:"node_count,omitempty"`
	CoreCount int32         `json:"core_count,omitempty"` // cores of its nodes instead of whole ones; 0: whole
	Partition PartitionName `json:"partition,omitempty"`
	Features  Constraint    `json:"features,omitzero"`
	Users     []UserName    `json:"users,omitempty"`    // with a leading '-': all but these
	Projects  []ProjectName `json:"accounts,omitempty"` // likewise
	Groups    []string      `json:"groups,omitempty"`
	Licenses  []License     `json:"licenses,omitempty"`
	TRES      TRES          `json:"tres,omitempty"`
	Flags     ReserveFlag   `json:"flags,omitempty"`
	PurgeComp Seconds       `json:"purge_comp,omitempty"` // with PurgeCompleted: idle for so long, it goes
	// with PurgeCompleted: since when no job has been in it, or has waited for it
	IdleSince Time    `json:"idle_since,omitempty"`
	MaxDelay  Seconds `json:"max_start_delay,omitempty"`
	Comment   string  `json:"comment,omitempty"`
}

// ReserveFlag changes how a reservation is kept.
type ReserveFlag uint32

// The flags, in Slurm's words.
const (
	ReserveMaint ReserveFlag = 1 << iota
	ReserveIgnoreJobs
	ReserveOverlap
	ReserveFlex
	ReserveDaily
	ReserveWeekly
	ReserveWeekday
	ReserveWeekend
	ReserveHourly
	ReservePurgeCompleted
	ReserveReplace
	ReserveReplaceDown
	ReserveStatic
	ReserveSpecNodes
	ReserveAnyNodes
	ReservePartNodes
	ReserveAllNodes
	ReserveTimeFloat
	ReserveMagnetic
	ReserveNoHold
	ReserveLicenseOnly
	ReserveForceStart
	ReserveUserDelete
)

// ReserveRepeats are the flags of which at most one says how often it comes again.
const ReserveRepeats = ReserveDaily | ReserveWeekly | ReserveWeekday | ReserveWeekend | ReserveHourly

// Topology is how the network joins nodes: a tree of switches, or blocks of equal nodes. It comes from the config file.
type Topology struct {
	Kind       string   `json:"kind"`                  // empty: flat
	Switches   []Switch `json:"switches,omitempty"`    // of a tree; a leaf has Nodes, others have Switches
	Blocks     []Switch `json:"blocks,omitempty"`      // of blocks, in order
	BlockSizes []int32  `json:"block_sizes,omitempty"` // nodes in a block, and in each larger one that neighbors form
}

// The kinds of topology.
const (
	TopologyTree  = "tree"
	TopologyBlock = "block"
)

// Switch is one switch or block.
type Switch struct {
	Name     string `json:"name"`
	Nodes    string `json:"nodes,omitempty"`    // hostlist
	Switches string `json:"switches,omitempty"` // hostlist of the switches below it
}
