package config

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// TagPrefix begins the tags by which stock clients write Additions: the tag bireme-partition is the key partition.
const TagPrefix = "bireme-"

// Additions are Bireme's own keys of a run, with the grammars of the Slurm options of the same name.
type Additions struct {
	Array      *grammar.Array
	DependsOn  []Dependency // all must hold
	Partition  string       // one name, or several separated by commas
	QOS        string
	Account    string       // the project that pays; "": the one of the call
	Time       core.Seconds // limit of the whole job; 0: none given, core.Forever: none wanted
	Deadline   string       // a moment, read by grammar.ParseMoment when the run is submitted
	Begin      string       // a moment, as Deadline
	Constraint string       // features of nodes, read by grammar.ParseConstraint
	Switches   string       // N or N@TIME, read by grammar.ParseSwitches
	Requeue    *bool        // start again after a node failed; nil: as retry says
	Checkpoint *Checkpoint
	Runtime    string // core.RuntimeProcess, core.RuntimeContainer; "": by the image, else the project's
}

// Dependency is a job or a run to wait for.
type Dependency struct {
	When core.NeedKind
	Job  string // number of a job, with _TASK and +MINUTES as in Slurm's grammar; "": Run says
	Run  string // name of a run of the project
}

// Checkpoint is how a job is told to save its state before it is preempted or its time ends, and how it says that it
// has.
type Checkpoint struct {
	Signal int          // sent to save
	Grace  core.Seconds // from the signal to the end
	Saved  string       // a file in the working directory; its time is when state was last saved
}
