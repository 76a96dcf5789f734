package state

import (
	"fmt"

	"bireme.dev/bireme/internal/core"
)

// Apply carries out one input at the time set by Advance. It returns the reply the input's comment names, or an error
// after which nothing has changed.
func (s *State) Apply(in Input) (any, error) {
	out, err := s.apply(in)
	s.updateIdleTimes()
	s.runIdleActions()
	return out, err
}

func (s *State) apply(in Input) (any, error) {
	switch in := in.(type) {
	case *Submit:
		return reply(s.submit(in))
	case *Try:
		return reply(s.try(in))
	case *Start:
		return reply(s.start(in))
	case *Preempt:
		return nil, s.preempt(in)
	case *Cancel:
		return nil, s.cancel(in)
	case *Exited:
		return nil, s.exited(in)
	case *NodeDone:
		return nil, s.nodeDone(in)
	case *AllocDone:
		return nil, s.allocDone(in)
	case *CreateStep:
		return reply(s.createStep(in))
	case *Register:
		return reply(s.register(in))
	case *NodeSilence:
		return nil, s.nodeSilence(in)
	case *Fenced:
		return nil, s.fenced(in)
	case *NodeHealth:
		return nil, s.nodeHealth(in)
	case *UpdateNode:
		return nil, s.updateNode(in)
	case *UpdateJob:
		return nil, s.updateJob(in)
	case *Requeue:
		return nil, s.requeue(in)
	case *Suspend:
		return nil, s.suspend(in)
	case *EnsureUser:
		return reply(s.ensureUser(in))
	case *PutUser:
		return nil, s.putUser(in)
	case *PutProject:
		return nil, s.putProject(in)
	case *PutMember:
		return nil, s.putMember(in)
	case *PutToken:
		return nil, s.putToken(in)
	case *RevokeToken:
		return nil, s.revokeToken(in)
	case *RotateToken:
		return reply(s.rotateToken(in))
	case *TokensUsed:
		return nil, s.tokensUsed(in)
	case *PurgeTokens:
		return reply(s.purgeTokens(in))
	case *UseToken:
		return reply(s.useToken(in))
	case *RemoveNode:
		return reply(s.removeNodeBy(in))
	case *NodeKey:
		return nil, s.nodeKey(in)
	case *PutNode:
		return reply(s.declareNode(in))
	case *UnitHealth:
		return nil, s.unitHealth(in)
	case *PutQOS:
		return nil, s.putQOS(in)
	case *DropQOS:
		return nil, s.dropQOS(in)
	case *DropProject:
		return nil, s.dropProject(in)
	case *ApplyPolicy:
		return reply(s.applyPolicy(in))
	case *Reconfigure:
		return reply(s.reconfigure(in))
	case *PutReservation:
		return reply(s.putReservation(in))
	case *UpdateReservation:
		return reply(s.updateReservation(in))
	case *DropReservation:
		return nil, s.dropReservation(in)
	case *PutFleet:
		return reply(s.putFleet(in))
	case *DropFleet:
		return nil, s.dropFleet(in)
	case *FleetNews:
		return nil, s.fleetNews(in)
	case *TrustFleet:
		return nil, s.trustFleet(in)
	case *ResealFleet:
		return nil, s.resealFleet(in)
	case *PlannerFailed:
		return nil, s.plannerFailed(in)
	case *Tick:
		return nil, s.tick()
	}
	panic(fmt.Sprintf("bireme: unknown input %T", in))
}

// reply keeps a typed nil out of the interface.
func reply[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// authorizeUpdate refuses changes of somebody else's job. A manager of its project may hold it, release it and let
// others go first, as coordinators in Slurm; all else would be written into a job that runs as its owner.
func (s *State) authorizeUpdate(in *UpdateJob, j *core.Job) error {
	if err := s.authorize(in.By, j); err != nil || in.By.Admin || in.By.User == j.Spec.User {
		return err
	}
	if in.TimeLimit == nil && in.Name == nil && in.Partition == nil && in.QOS == nil && in.Site == nil && in.Run == nil &&
		in.Comment == nil &&
		in.Dependency == nil && in.Checkpoint == nil && !in.Wish.Any() && !in.Spec.Any() {
		return nil
	}
	return core.Errorf(core.Denied,
		"job %d belongs to %s: a manager of project %s may stop, hold, release and requeue it and lower its priority, "+
			"but not change what it asks for or where it writes", j.ID, j.Spec.User, j.Spec.Project).Because("access_denied")
}

// authorize tells whether somebody may steer a job: its owner, an administrator, or a manager of its project.
func (s *State) authorize(by core.Identity, j *core.Job) error {
	if err := checkTokenProject(by, j.Spec.Project); err != nil {
		return err
	}
	if by.Admin || by.User == j.Spec.User || s.isManager(by, j.Spec.Project) {
		return nil
	}
	return core.Errorf(core.Denied, "job %d belongs to %s", j.ID, j.Spec.User).Because("access_denied")
}
