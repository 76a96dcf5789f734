package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/taskset"
	"bireme.dev/bireme/internal/engine/state/jobs"
	"bireme.dev/bireme/internal/engine/state/nodes"
	"bireme.dev/bireme/internal/sched"
)

// Submit asks for a job or an array. Reply: *Submitted.
type Submit struct {
	By     core.Identity
	Spec   *core.Spec // taken over: the caller must not touch it afterwards
	Script []byte     // its hash is in Spec.Script
	Env    []byte     // its hash is in Spec.Env
	Files  []byte     `json:",omitempty"` // their hash is in Spec.Extra.Files
	Key    string     // client-made; the same key gives the same job
	Run    *core.Run  // set by YAML fronts: the run this job makes; Jobs is filled in
	Config []byte     // blob of Run.Config
	Strict bool       // refuse what can never start instead of letting it wait
	// FailUnfit records a request that no node could ever serve as a job that failed, in place of refusing it.
	FailUnfit bool   `json:",omitempty"`
	Tried     string `json:",omitempty"` // what the record of such a job says beside the refusal
	// Site: the site's own plug-ins have decided on it, and may have set what only administrators may ask for.
	Site bool `json:",omitempty"`
	// Components are those of a het job after the first, which is Spec: each becomes a job, with the ids that follow.
	Components []*core.Spec `json:",omitempty"`
	Groups     []string     // unix groups of the job's user, where a partition asks for them
	// Ended are the records of jobs that Spec.Extra.Dependency names and that have left memory: memory does not know how
	// they ended. Seen is the number of the snapshot they were missing from, 0 if nobody looked.
	Ended []*core.Job
	Seen  int64
	// Hidden are jobs that the caller is not to know of: a dependency on one is taken as on a job that never was.
	Hidden []core.JobID `json:",omitempty"`
}

// Submitted is the reply to Submit.
type Submitted struct {
	ID        core.JobID
	Duplicate bool // the key had been used: nothing new was made
}

// Start is the planner's wish to start a job (or one task of an array) somewhere; it is checked again. Reply: *Started.
type Start struct {
	Job   core.JobID
	Task  int32 // of an array record
	Alloc *core.Alloc
	Limit core.Seconds    `json:",omitempty"` // in place of the job's own; 0: its own
	Aside []sched.Suspend `json:",omitempty"` // jobs that are suspended for it, and what they lend
	Rest  []Start         `json:",omitempty"` // the other components of a het job: all start or none
}

// Started is the reply to Start.
type Started struct{ ID core.JobID }

// Cancel asks for the end of a job, an array or tasks of it. Reply: nil.
type Cancel struct {
	By     core.Identity
	Job    core.JobID
	Tasks  taskset.Set     // of array Job; empty: the whole job or array
	States []core.JobState // only if in one of these; nil: any
	Abort  bool            `json:",omitempty"` // kill what runs at once
}

// Exited reports the end of a step on a node, from its agent. Reply: nil. It may come twice.
type Exited jobs.ExitReport

// ExitCause is why a step ended, when its exit status does not say.
type ExitCause = jobs.ExitCause

// The causes that others than agents name.
const (
	CauseExit      = jobs.CauseExit
	CauseCancelled = jobs.CauseCancelled
	CauseLaunch    = jobs.CauseLaunch
)

// NodeDone reports that a node holds nothing of a job any more. Reply: nil.
type NodeDone struct {
	Node    core.NodeName
	Job     core.JobID
	Attempt int32
}

// AllocDone says that the creator of an interactive job gives it back. Reply: nil.
type AllocDone struct {
	By   core.Identity
	Job  core.JobID
	Exit core.Exit
}

// CreateStep makes a numbered step. Reply: *StepsCreated.
type CreateStep struct {
	By   core.Identity
	Step *core.Step // Job and Name set; without Request also Nodes, Tasks, CPUs and Holds
	// Request says what the step asks for: where it is placed is decided here.
	Request *core.StepRequest `json:",omitempty"`
	// Rest are the parts of the step in other components of a het job: all are made or none. Their By is not read.
	Rest []CreateStep `json:",omitempty"`
}

// UpdateStep changes the time limit of a numbered step that runs, or of all of a job's. Reply: none.
type UpdateStep struct {
	By        core.Identity
	Job       core.JobID
	Step      int32 // negative: all
	TimeLimit core.Seconds
}

// StepsCreated is the reply to CreateStep: the step, and its parts in other components.
type StepsCreated struct {
	Steps []*core.Step
	Jobs  []*core.Job // of each step, as it was when the step was placed on its nodes
}

// Register is an agent's account of its node at connect. Reply: *Reconciled.
type Register struct {
	Node      core.NodeName
	Hardware  core.Hardware
	Host      core.Host
	Roles     core.NodeRole
	TrustRoot bool
	Fleet     string
	Features  []string
	Running   []StepRef
	Ended     []Exited // applied first, and nothing starts on the node before the rest is
	Trust     string   // the file of authorities that the node has
}

// StepRef names a step of an attempt.
type StepRef struct {
	Job     core.JobID
	Attempt int32
	Step    string
}

// Reconciled is the reply to Register: what the agent should kill because nobody wants it any more.
type Reconciled struct {
	Kill []StepRef
	Node *core.Node
}

// NodeSilence says that a node's agent has not been heard for too long, or (Back) that it is back. Reply: nil.
type NodeSilence struct {
	Node core.NodeName
	Back bool
}

// Fenced says that a node has been silent for longer than the fence of these jobs (nil: of all on it) and the margin:
// what ran of them there is dead. Reply: nil.
type Fenced struct {
	Node core.NodeName
	Jobs []core.JobID
}

// UpdateNode changes a node's administrative state. Reply: nil.
type UpdateNode nodes.Request

// UpdateJob changes a job. Nil fields stay. Reply: nil.
type UpdateJob struct {
	By        core.Identity
	Job       core.JobID
	Tasks     taskset.Set // of array Job, those that wait: each becomes a job of its own; empty: the whole job or array
	Hold      *bool
	AdminHold bool // with Hold: as an administrator
	TimeLimit *core.Seconds
	Priority  *uint32 // 0: a hold
	Nice      *int32
	Name      *string
	Partition *core.PartitionList
	QOS       *core.QOSName
	Site      *int32 // added to the priority; administrators only
	Run       *int32 // priority of a YAML run, 0 to 100
	// Inactivity replaces that of a YAML run's rules; 0: off. A run that nobody is connected to begins to wait again.
	Inactivity *core.Seconds `json:",omitempty"`
	Comment    *string
	Wish       core.WishChange
	Spec       core.SpecChange
	Groups     []string // of the job's user, with Partition, QOS, Reservation or an AskChange, where one asks for them

	// Dependency is what a pending job waits for from now on; empty: nothing. Ended, Seen and Hidden are as in Submit, and
	// so is Strict, for what it names.
	Dependency *core.Dependency
	Ended      []*core.Job
	Seen       int64
	Hidden     []core.JobID `json:",omitempty"`
	Strict     bool

	part     bool            // it follows from a change of the first component
	drop     []core.NodeName // of a job that runs, which gives them back; see shrink
	ResetAge bool            `json:",omitempty"` // a job that waits is as old for its priority as one that came now
	// Checkpoint says when the job last saved its work: what it did before is not lost if it is preempted. 0: now.
	Checkpoint *core.Time
}

// Requeue sends a job back to the queue. Reply: nil.
type Requeue struct {
	By      core.Identity
	Job     core.JobID
	Hold    bool
	Reason  core.Reason `json:",omitempty"` // why it is held then; empty: as somebody's hold
	Special bool        `json:",omitempty"` // held in the state SPECIAL_EXIT
	// Ended is the record of a job that has left memory. The caller has checked how long ago it ended.
	Ended *core.Job `json:",omitempty"`
}

// Suspend stops a running job, or resumes it. Reply: nil.
type Suspend struct {
	By     core.Identity
	Job    core.JobID
	Resume bool

	part bool // it follows from that of the first component
}

// EnsureUser finds or makes the user of a uid seen by the kernel. Reply: *core.User.
type EnsureUser struct {
	UID      uint32
	UnixName string
}

// DropUser deletes a user who has no live job: the user leaves all projects, and tokens and keys go. Reply: nil.
type DropUser struct {
	By   core.Identity
	Name core.UserName
}

// PutUser and PutProject create or replace, PutToken makes a token. Reply: nil.
type (
	PutUser struct {
		By   core.Identity
		User *core.User
		New  bool // refuse if it is there
	}
	PutProject struct {
		By      core.Identity
		Project *core.Project
		New     bool
		// Was is the record that the change was made from: another one is refused, with ProjectChanged. Nil: any.
		Was *core.Project `json:",omitempty"`
	}
	// PutMember gives a user a role in a project, or with RoleNone takes the user out of it. Reply: nil.
	PutMember struct {
		By      core.Identity
		Project core.ProjectName
		User    core.UserName
		Role    core.Role
		Shares  *int32            // nil: as they are; administrators only, as
		Assoc   *core.Association // nil: as it is
	}
	PutToken struct {
		By    core.Identity
		Token *core.Token
	}
	// UseToken spends a join token; the second use is refused. The node is known by the key from then on. Reply:
	// *core.Token.
	UseToken struct {
		ID   string
		Node core.NodeName
		Key  string // see core.NodePin
		Ends core.Time
	}
	// PutNode makes a node known before it joins (from the config file). Reply: *core.Node.
	PutNode struct {
		Node *core.Node
	}
)

// Tick does what time alone brings: see NextWake. Reply: nil.
type Tick struct{}

func (*Submit) input()      {}
func (*Start) input()       {}
func (*Cancel) input()      {}
func (*Exited) input()      {}
func (*NodeDone) input()    {}
func (*AllocDone) input()   {}
func (*CreateStep) input()  {}
func (*UpdateStep) input()  {}
func (*Register) input()    {}
func (*NodeSilence) input() {}
func (*Fenced) input()      {}
func (*UpdateNode) input()  {}
func (*UpdateJob) input()   {}
func (*Requeue) input()     {}
func (*Suspend) input()     {}
func (*EnsureUser) input()  {}
func (*PutUser) input()     {}
func (*DropUser) input()    {}
func (*PutProject) input()  {}
func (*PutMember) input()   {}
func (*PutToken) input()    {}
func (*UseToken) input()    {}
func (*PutNode) input()     {}
func (*Tick) input()        {}
