package state

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/people"
)

type (
	// PutQOS creates or replaces a QOS. Reply: nil.
	PutQOS struct {
		By  core.Identity
		QOS *core.QOS
		New bool // refuse if it is there
	}
	// DropQOS removes a QOS that nothing names any more. Reply: nil.
	DropQOS struct {
		By     core.Identity
		Name   core.QOSName
		Unlist bool // take it out of the lists of projects, members and other QOS; it must be nobody's default
	}
	// DropProject removes a project that has no job, no project below it and is nobody's default. What was spent in it is
	// forgotten. Reply: nil.
	DropProject struct {
		By      core.Identity
		Name    core.ProjectName
		Members bool // also if it is somebody's default: they get another of their projects, or none
	}
	// NumberPolicy gives ids to records of earlier versions that have none. Reply: nil.
	NumberPolicy struct{}
	// ApplyPolicy replaces every QOS, project and member that the policy names, all or nothing; with Prune those it does
	// not name go. Reply: *core.PolicyDiff.
	ApplyPolicy struct {
		By     core.Identity
		Policy core.Policy
		Prune  bool
		Force  bool // also with limits below what already runs
		Dry    bool // change nothing, tell what would change
	}
	// PutReservation creates or replaces an advance reservation. Reply: *core.AdvanceReservation, completed.
	PutReservation struct {
		By          core.Identity
		Reservation *core.AdvanceReservation
		New         bool // refuse if it is there
	}
	// UpdateReservation changes an advance reservation. Nil fields stay. Reply: *core.AdvanceReservation, as it is now.
	UpdateReservation struct {
		By     core.Identity
		Name   string
		Change core.ReservationChange
	}
	// DropReservation removes an advance reservation. Reply: nil.
	DropReservation struct {
		By   core.Identity
		Name string
	}
)

// Reconfigure replaces what came from the config file. Reply: *Reconfigured.
type Reconfigure struct {
	By        core.Identity
	Config    Config
	Nodes     []*core.Node    // those of the file: weight and features of those that have joined, all of the others
	GoneNodes []core.NodeName // that were in the file: they go, those with jobs when these have ended
	Dry       bool            // change nothing, tell what would change
}

// Reconfigured is the reply to Reconfigure.
type Reconfigured struct {
	Changes []core.PolicyChange
}

func (*Reconfigure) input()       {}
func (*PutQOS) input()            {}
func (*DropQOS) input()           {}
func (*DropProject) input()       {}
func (*NumberPolicy) input()      {}
func (*UpdateReservation) input() {}
func (*ApplyPolicy) input()       {}
func (*PutReservation) input()    {}
func (*DropReservation) input()   {}

func (in *PutReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may make reservations"); err != nil {
		return nil, err
	}
	return s.reservations.Put(in.Reservation, in.New)
}

func (in *UpdateReservation) apply(s *State) (*core.AdvanceReservation, error) {
	if err := people.AdminOnly(in.By, "may change reservations"); err != nil {
		return nil, err
	}
	return s.reservations.Update(in.Name, &in.Change)
}

func (in *DropReservation) apply(s *State) (None, error) {
	return none, s.reservations.Delete(in.By, in.Name)
}
