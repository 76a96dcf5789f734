package core

import "strings"

// NodeState is all that a node's name depends on, in both tongues. There is no state beside it: what a listing shows is
// worked out from the flags of the record and from who uses the node. The diagram is in docs/nodes.md.
type NodeState struct {
	Flags      NodeFlag
	CPUs       int32 // of the node
	Alloc      int32 // of them, given to jobs
	Completing bool  // a job has ended and the node is not clean of it
	Reserved   bool  // by an advance reservation that is active
	Planned    bool  // the plan has promised it to a job that waits
	Cloud      bool  // made from an offer, or by programs of the site's

	// What only fleets know.
	Making  bool // its host is being prepared
	Leaving bool // its host leaves the fleet
}

// slurmFlags are the flags in Slurm's words, in the order scontrol writes them.
var slurmFlags = []struct {
	flag NodeFlag
	name string
}{
	{NodeDrain, "DRAIN"},
	{NodeFailFlag, "FAIL"},
	{NodeMaint, "MAINTENANCE"},
	{NodeReboot, "REBOOT_REQUESTED"},
	{NodeRebooting, "REBOOT_ISSUED"},
	{NodePowerDown, "POWER_DOWN"},
	{NodePoweringDown, "POWERING_DOWN"},
	{NodePoweredDown, "POWERED_DOWN"},
	{NodePoweringUp, "POWERING_UP"},
	{NodeSilent, "NOT_RESPONDING"},
}

// base is the first word of Slurm's name.
func (s NodeState) base() string {
	switch {
	case s.Flags.Has(NodeFuture):
		return "FUTURE"
	case s.Flags.Has(NodeDown):
		return "DOWN"
	case s.Flags.Any(Asleep):
		return "IDLE" // as it is for those who wait for it
	case s.Flags.Has(NodeUnknown):
		return "UNKNOWN"
	case s.Flags.Has(NodeSilent) && s.Alloc == 0 && !s.Flags.Has(NodeRebooting):
		return "DOWN"
	case s.Alloc >= s.CPUs && s.Alloc > 0:
		return "ALLOCATED"
	case s.Alloc > 0:
		return "MIXED"
	}
	return "IDLE"
}

// Slurm is the state as scontrol writes it: a base and flags, joined by +.
func (s NodeState) Slurm() string {
	text := s.base()
	for _, f := range slurmFlags {
		if s.Flags.Has(f.flag) {
			text += "+" + f.name
		}
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{s.Completing, "COMPLETING"}, {s.Cloud, "CLOUD"}, {s.Reserved, "RESERVED"}, {s.Planned, "PLANNED"}} {
		if f.on {
			text += "+" + f.name
		}
	}
	return text
}

// Dstack is the state as dstack names that of an instance, and whether it adds that the instance cannot be reached. A
// node that takes no new jobs is still idle or busy there: dstack has no word for a drain.
func (s NodeState) Dstack() (status string, unreachable bool) {
	away := s.Flags.Has(NodeSilent) && !s.Flags.Any(Asleep)
	switch {
	case s.Leaving, s.Flags.Has(NodePoweringDown):
		return "terminating", false
	case s.Flags.Has(NodePoweredDown), s.Flags.Has(NodeFuture):
		return "terminated", false
	case s.Flags.Has(NodePoweringUp), s.Flags.Has(NodeUnknown) && s.Making:
		return "provisioning", false
	case s.Flags.Has(NodeUnknown):
		return "pending", false
	case s.Alloc > 0 || s.Completing:
		return "busy", away
	}
	return "idle", away
}

// String names the flags that are set, for events and logs: "drain,silent"; a node without any is "up".
func (f NodeFlag) String() string {
	var out []string
	for _, w := range []struct {
		flag NodeFlag
		name string
	}{
		{NodeUnknown, "unknown"},
		{NodeFuture, "future"},
		{NodeDown, "down"},
		{NodeDrain, "drain"},
		{NodeFailFlag, "fail"},
		{NodeMaint, "maint"},
		{NodeReboot, "reboot-requested"},
		{NodeRebooting, "rebooting"},
		{NodePowerDown, "power-down"},
		{NodePoweringDown, "powering-down"},
		{NodePoweredDown, "powered-down"},
		{NodePoweringUp, "powering-up"},
		{NodeSilent, "silent"},
	} {
		if f.Has(w.flag) {
			out = append(out, w.name)
		}
	}
	if out == nil {
		return "up"
	}
	return strings.Join(out, ",")
}
