package core

import "encoding/json"

// Event records one change. Seq has no gaps; an event is written in the transaction of its change, so a watcher that
// resumes after Seq n misses nothing.
type Event struct {
	Seq  int64           `json:"seq"`
	At   Time            `json:"at"`
	Kind EventKind       `json:"kind"`
	Job  JobID           `json:"job,omitempty"`
	Node NodeName        `json:"node,omitempty"`
	User UserName        `json:"user,omitempty"` // whose thing it is: owners see their own, administrators all
	By   UserName        `json:"by,omitempty"`   // who did it, if somebody did
	Data json.RawMessage `json:"data,omitempty"` // small; never a script, an environment or a secret
}

// EventKind says what happened.
type EventKind string

// The kinds.
const (
	JobSubmitted   EventKind = "job.submitted"
	JobStarted     EventKind = "job.started"
	JobEnded       EventKind = "job.ended"   // it has its final state
	JobCleaned     EventKind = "job.cleaned" // its last node is clean
	JobRequeued    EventKind = "job.requeued"
	JobUpdated     EventKind = "job.updated"
	JobCancelAsk   EventKind = "job.cancel"
	StepStarted    EventKind = "step.started"
	StepEnded      EventKind = "step.ended"
	NodeJoined     EventKind = "node.joined"
	NodeChanged    EventKind = "node.changed"
	UserChanged    EventKind = "user.changed"
	ProjectChanged EventKind = "project.changed"
	TokenChanged   EventKind = "token.changed"
	RunChanged     EventKind = "run.changed"
	QOSChanged     EventKind = "qos.changed"
	ReserveChanged EventKind = "reservation.changed"
	JobPreempted   EventKind = "job.preempted"
	ConfigChanged  EventKind = "config.changed"
	FleetChanged   EventKind = "fleet.changed"
	// a secret, a repository or a key; Data has its kind, owner and name, and what became of it
	CredentialChanged EventKind = "credential.changed"
	VolumeChanged     EventKind = "volume.changed" // Data has its name, and what became of it
	HistoryTaken      EventKind = "history.taken"  // jobs and usage of another system were taken over
)

// Blob is bytes by hash.
type Blob struct {
	Hash Hash
	Data []byte
}

// SubmitKey remembers that a client-made key was used, so that sending a submission again gives the same job.
type SubmitKey struct {
	Key  string
	Job  JobID
	At   Time
	User UserName
}

// Changes is all that one batch of inputs changed: what the store writes in one transaction. Each slice holds whole new
// records; a record that changed twice in a batch is there once, as it is at the end.
type Changes struct {
	Now       Time
	NextJob   JobID // first id never used
	NextNode  int64
	LastIDs   *LastIDs // nil: none was given
	Jobs      []*Job
	Specs     []SpecRow
	Steps     []*Step
	Nodes     []*Node
	Users     []*User
	Projects  []*Project
	Spent     []*Spent
	Tokens    []*Token
	Runs      []*Run
	Blobs     []Blob
	Keys      []SubmitKey
	Events    []Event // Seq already given, without gaps
	GoneNodes []NodeName

	QOS              []*QOS
	GoneQOS          []QOSName
	Reservations     []*AdvanceReservation
	GoneReservations []string
	GoneProjects     []ProjectName
	GoneUsers        []UserName
	Fleets           []*Fleet
	GoneFleets       []string
	GoneTokens       []string
	Credentials      []*Credential
	GoneCredentials  []CredentialKey
	Volumes          []*Volume
	GoneVolumes      []VolumeKey
}

// LastIDs are the highest ids that were ever given to records that can be deleted: a new record never has the id of a
// deleted one. Projects and members of projects are numbered together.
type LastIDs struct{ Reservation, QOS, Project int64 }

// SpecRow is a spec under the id it is stored under.
type SpecRow struct {
	ID   JobID
	Spec *Spec
}

// Empty reports whether nothing changed.
func (c *Changes) Empty() bool {
	return len(c.Events) == 0 && len(c.Jobs) == 0 && len(c.Nodes) == 0 && len(c.Steps) == 0 && len(c.Tokens) == 0 &&
		len(c.GoneTokens) == 0
}
