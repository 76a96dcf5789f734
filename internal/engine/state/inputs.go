package state

import (
	"reflect"
)

// Input is a command to the state. Inputs say what happened or what somebody wants; only apply decides what follows.
type Input interface{ input() }

// Command is an input with the type of its reply. Every input has an apply method, which either changes everything it
// should or returns an error and has changed nothing.
type Command[R any] interface {
	Input
	apply(s *State) (R, error)
}

// None is the reply to an input that has nothing to say.
type None struct{}

var none None

// inputs lists every input there is. To add one: declare its type with an input method in input.go, its apply method in
// the file of its subject, and a line here. Recordings name inputs by their type: a type keeps its name for good.
var inputs = []inputKind{
	// Jobs.
	kindOf((*Submit).apply),    // a job, an array or a het job
	kindOf((*Try).apply),       // a submission that is only admitted or refused
	kindOf((*UpdateJob).apply), // hold, release, limits, request, dependency, …
	kindOf((*Cancel).apply),    // ends a job, an array or tasks
	kindOf((*Requeue).apply),   // back to the queue
	kindOf((*Suspend).apply),   // stops a running job, or resumes it
	kindOf((*AllocDone).apply), // an interactive job is given back
	// Runs.
	kindOf((*EditRun).apply),     // changes an open run in place
	kindOf((*DeleteRun).apply),   // deletes one that has ended
	kindOf((*TendService).apply), // brings a service forward
	kindOf((*StopService).apply), // ends one
	// The plan.
	kindOf((*Start).apply),         // starts a job on nodes
	kindOf((*Preempt).apply),       // ends or requeues a victim
	kindOf((*PlannerFailed).apply), // holds the job the planner fails on
	// Agents.
	kindOf((*Register).apply),    // an agent connects
	kindOf((*Exited).apply),      // a step ended on a node
	kindOf((*NodeDone).apply),    // a node is clean of a job
	kindOf((*NodeSilence).apply), // a node is not heard, or is again
	kindOf((*Fenced).apply),      // what ran on a silent node is dead
	kindOf((*UnitHealth).apply),  // GPUs and other units that are sick
	kindOf((*NodeHealth).apply),  // faults of a node as a whole
	// Runs.
	kindOf((*GPUUnused).apply), // a GPU is used too little
	// Steps.
	kindOf((*CreateStep).apply), // a numbered step of a running job
	kindOf((*UpdateStep).apply), // its time limit
	// Nodes.
	kindOf((*PutNode).apply),    // a node of the config file
	kindOf((*UpdateNode).apply), // drain, resume, down, reboot, power, …
	kindOf((*RemoveNode).apply), // a node is forgotten
	kindOf((*NodeKey).apply),    // the key a node is known by
	// Fleets.
	kindOf((*PutFleet).apply),    // creates or changes a fleet
	kindOf((*DropFleet).apply),   // deletes a fleet or hosts of it
	kindOf((*FleetNews).apply),   // what was found out about a host
	kindOf((*TrustFleet).apply),  // forgets host keys
	kindOf((*ResealFleet).apply), // secrets under another key
	// Secrets, repositories and keys.
	kindOf((*PutCredential).apply),    // creates or replaces
	kindOf((*DropCredential).apply),   // deletes
	kindOf((*ResealCredential).apply), // the sealed text under another key
	// Network volumes.
	kindOf((*PutVolume).apply),  // makes one
	kindOf((*DropVolume).apply), // deletes one that no job uses
	kindOf((*VolumeNews).apply), // what its node did
	// People.
	kindOf((*EnsureUser).apply),   // the user of a uid
	kindOf((*PutUser).apply),      // creates or replaces
	kindOf((*DropUser).apply),     // deletes
	kindOf((*PutProject).apply),   // creates or replaces
	kindOf((*DropProject).apply),  // deletes
	kindOf((*PutMember).apply),    // a role in a project
	kindOf((*NumberPolicy).apply), // ids of records that have none
	kindOf((*TakeHistory).apply),  // ended jobs and usage of another system
	// Tokens.
	kindOf((*PutToken).apply),    // creates a token
	kindOf((*UseToken).apply),    // a join token is used
	kindOf((*RotateToken).apply), // another secret
	kindOf((*RevokeToken).apply), // ends a token
	kindOf((*RevokeJWTs).apply),  // ends a user's JWTs
	kindOf((*TokensUsed).apply),  // times of last use
	kindOf((*PurgeTokens).apply), // forgets dead tokens
	// Policy and settings.
	kindOf((*PutQOS).apply),      // creates or replaces
	kindOf((*DropQOS).apply),     // deletes
	kindOf((*ApplyPolicy).apply), // replaces QOS and projects
	kindOf((*Reconfigure).apply), // replaces the config
	// Advance reservations.
	kindOf((*PutReservation).apply),    // creates or replaces
	kindOf((*UpdateReservation).apply), // changes some fields
	kindOf((*DropReservation).apply),   // deletes
	// Time.
	kindOf((*Tick).apply), // what is due by time alone
}

// inputKind is what is known of a type of input.
type inputKind struct {
	name  string
	typ   reflect.Type
	apply func(*State, Input) (any, error)
}

func kindOf[T, R any](apply func(*T, *State) (R, error)) inputKind {
	t := reflect.TypeFor[T]()
	return inputKind{t.Name(), t, func(s *State, in Input) (any, error) {
		reply, err := apply(any(in).(*T), s)
		if _, is := any(reply).(None); err != nil || is {
			return nil, err
		}
		return reply, nil
	}}
}

// kindByName and kindByType find the kind of an input by the name it is recorded under, and by its type.
var kindByName, kindByType = func() (map[string]*inputKind, map[reflect.Type]*inputKind) {
	names, types := map[string]*inputKind{}, map[reflect.Type]*inputKind{}
	for i := range inputs {
		k := &inputs[i]
		names[k.name], types[k.typ] = k, k
	}
	return names, types
}()

// Apply carries out one input at the time set by Advance. After an error nothing has changed.
func Apply[R any](s *State, in Command[R]) (R, error) {
	reply, err := in.apply(s)
	s.afterInput()
	return reply, err
}

// Apply carries out an input whose type is not known before it runs, as one of a recording. The reply is nil for inputs
// whose reply is None.
func (s *State) Apply(in Input) (any, error) {
	reply, err := kindByType[reflect.TypeOf(in).Elem()].apply(s, in)
	s.afterInput()
	return reply, err
}

// afterInput does what an input leaves to be done once, whatever it changed.
func (s *State) afterInput() {
	s.nodes.UpdateIdleTimes()
	s.nodes.RunIdleActions()
}
