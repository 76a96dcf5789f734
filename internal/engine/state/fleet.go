package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/sched"
)

// Inputs about fleets.
type (
	// PutFleet makes a fleet, or changes one in place: hosts are told apart by where they are, and those that are not
	// named any more leave. Reply: *core.FleetPlan.
	PutFleet struct {
		By    core.Identity
		Fleet *core.Fleet // as the user wants it: Num, Node and what is found out are filled in
		Force bool        // hosts leave although jobs run on them
		Dry   bool        // only tell what would change
	}
	// DropFleet has a fleet, or some of its hosts, leave. Reply: nil.
	DropFleet struct {
		By    core.Identity
		Name  string
		Hosts []int32 // nil: all, and the fleet itself
		Force bool    // although jobs run there: they end
	}
	// FleetNews is what was found out about a host. Nil fields stay. Reply: nil.
	FleetNews struct {
		Fleet   string
		Num     int32
		HostKey *string
		JumpKey *string
		Peer    *string
		Cert    *string
		Key     string    // of the certificate, if it is a new one: the node is known by it from then on
		Ends    core.Time // of the certificate
		Cause   *string
		Runs    *string
		Gone    bool // its agent is removed, or cannot be, for Cause: the host leaves its fleet
	}
	// TrustFleet forgets the host keys of a fleet, or of some of its hosts: the next ones shown are kept. Reply: nil.
	TrustFleet struct {
		By    core.Identity
		Name  string
		Hosts []int32 // nil: all
	}
)

func (*PutFleet) input()   {}
func (*DropFleet) input()  {}
func (*FleetNews) input()  {}
func (*TrustFleet) input() {}

func (in *PutFleet) apply(s *State) (*core.FleetPlan, error) {
	if err := people.AdminOnly(in.By, "may change fleets"); err != nil {
		return nil, err
	}
	old, known := s.view.fleets[in.Fleet.Name]
	if known && old.Leaving {
		return nil, core.Errorf(core.Conflict, "fleet %s is being deleted: wait until it is gone",
			old.Name).Because("fleet_leaving")
	}
	next := *in.Fleet
	plan := &core.FleetPlan{Action: "create"}
	if known {
		next.By, next.Created, next.Next, plan.Action = old.By, old.Created, old.Next, "update"
		next.Project = cmp.Or(next.Project, old.Project)
	} else {
		next.By, next.Created, next.Next = in.By.User, s.view.now, 0
	}
	if _, ok := s.view.Project(next.Project); !ok && next.Project != "" {
		return nil, core.Errorf(core.Invalid, "there is no project %q%s", next.Project,
			named.Hint(next.Project, s.people.ProjectsByName())).Because("invalid_project")
	}
	if err := s.assignHosts(&next, old, plan); err != nil {
		return nil, err
	}
	if known && old.Placement != next.Placement {
		plan.Changed = append(plan.Changed, fmt.Sprintf("placement: %s", next.Placement))
	}
	if known && old.Project != next.Project {
		plan.Changed = append(plan.Changed, fmt.Sprintf("project: %s", next.Project))
	}
	if known && old.Network != next.Network {
		plan.Changed = append(plan.Changed, "network: "+cmp.Or(next.Network, "none"))
	}
	if known && old.Env.Sealed != next.Env.Sealed {
		plan.Changed = append(plan.Changed, "env: "+cmp.Or(strings.Join(next.Env.Names, ", "), "none"))
	}
	if known && len(plan.Added)+len(plan.Removed)+len(plan.Changed) == 0 {
		plan.Action = "none"
	}
	if err := s.checkHostsIdle(&next, in.Force, "--force"); err != nil {
		return nil, err
	}
	if err := s.checkFleetBlocks(&next); err != nil {
		return nil, err
	}
	if in.Dry || plan.Action == "none" {
		return plan, nil
	}
	for i := range next.Hosts {
		h := &next.Hosts[i]
		if was, ok := s.view.Node(h.Node); !ok || was.Fleet != next.Name {
			n := &core.Node{Name: h.Node, Fleet: next.Name, Roles: core.Compute, Weight: 1}
			_, _ = (&PutNode{Node: n}).apply(s) // it refuses nothing
		}
		if h.Leaving {
			s.takeHostDown(h)
		}
	}
	s.putFleetRecord(&next, in.By.User)
	s.setFleetBlocks(&next)
	return plan, nil
}

// assignHosts numbers the hosts of a fleet: those that were in it keep their numbers and what is known of them, and
// those that are not named any more are told to leave.
func (s *State) assignHosts(next, old *core.Fleet, plan *core.FleetPlan) error {
	taken := map[string]string{} // where hosts are, and whose they are
	for _, f := range named.Sorted(s.view.fleets) {
		for i := range f.Hosts {
			if f.Name != next.Name {
				taken[f.Hosts[i].Place()] = f.Name
			}
		}
	}
	was := map[string]*core.FleetHost{}
	if old != nil {
		for i := range old.Hosts {
			was[old.Hosts[i].Place()] = &old.Hosts[i]
		}
	}
	var faults []core.Fault
	hosts := make([]core.FleetHost, 0, len(next.Hosts))
	for i := range next.Hosts {
		h, path := next.Hosts[i], fmt.Sprintf("hosts[%d]", i)
		place := h.Place()
		h.HostKey, h.JumpKey, h.Peer, h.Cert, h.Runs, h.Cause, h.Since, h.Leaving = "", "", "", "", "", "", 0, false
		switch o := was[place]; {
		case taken[place] == next.Name:
			faults = append(faults, core.Fault{Path: path, Message: place + " is listed twice"})
		case taken[place] != "":
			faults = append(faults, core.Fault{
				Path:    path,
				Message: fmt.Sprintf("%s is in fleet %s: a host can be in one fleet only", place, taken[place]),
			})
		case o == nil:
			h.Num = next.Next
			next.Next++
			plan.Added = append(plan.Added, place)
		default:
			h.Num = o.Num
			if o.Leaving {
				return core.Errorf(core.Conflict, "host %s is being removed from the fleet: wait until it is gone",
					place).Because("fleet_leaving")
			}
			if what := describeHostChange(o, &h); what != "" {
				plan.Changed = append(plan.Changed, place+": "+what)
			}
			h.HostKey, h.Peer, h.Cert, h.Runs, h.Cause, h.Since = o.HostKey, o.Peer, o.Cert, o.Runs, o.Cause, o.Since
			if h.Jump.Host == o.Jump.Host {
				h.JumpKey = o.JumpKey
			}
			delete(was, place)
		}
		taken[place] = next.Name
		h.Node = next.NodeOf(h.Num)
		if n, ok := s.view.Node(h.Node); ok && n.Fleet != next.Name {
			faults = append(faults, core.Fault{
				Path:    path,
				Message: fmt.Sprintf("its node would be %s, which already exists", h.Node),
			})
		}
		if !hostlist.Valid(string(h.Node)) {
			faults = append(faults, core.Fault{Path: "name", Message: fmt.Sprintf("%s is not a valid node name", h.Node)})
		}
		hosts = append(hosts, h)
	}
	if len(faults) > 0 {
		lines := make([]string, len(faults))
		for i, f := range faults {
			lines[i] = f.Path + ": " + f.Message
		}
		return &core.Error{
			Code: core.Conflict, Reason: "invalid_fleet",
			Message: "fleet " + next.Name + ": " + strings.Join(lines, "; "), Faults: faults,
		}
	}
	if old != nil {
		for i := range old.Hosts {
			if o := old.Hosts[i]; was[o.Place()] != nil {
				if !o.Leaving {
					plan.Removed = append(plan.Removed, o.Place())
				}
				o.Leaving = true
				hosts = append(hosts, o)
			}
		}
	}
	next.Keys = keysInUse(next.Keys, old, hosts)
	next.Hosts = hosts
	return nil
}

// keysInUse keeps the keys that some host is reached with, those of hosts that leave too.
func keysInUse(keys []core.FleetKey, old *core.Fleet, hosts []core.FleetHost) []core.FleetKey {
	if old != nil {
		keys = append(slices.Clone(keys), old.Keys...)
	}
	var out []core.FleetKey
	for _, k := range keys {
		there := func(o core.FleetKey) bool { return o.Fingerprint == k.Fingerprint }
		used := func(h core.FleetHost) bool { return h.Login.Key == k.Fingerprint || h.Jump.Key == k.Fingerprint }
		if !slices.ContainsFunc(out, there) && slices.ContainsFunc(hosts, used) {
			out = append(out, k)
		}
	}
	return out
}

// describeHostChange words what is different about a host; empty: nothing.
func describeHostChange(a, b *core.FleetHost) string {
	var out []string
	if a.Login.User != b.Login.User {
		out = append(out, "user "+b.Login.User)
	}
	if a.Login.Key != b.Login.Key {
		out = append(out, "key "+b.Login.Key)
	}
	if a.Jump.User != b.Jump.User || a.Jump.Key != b.Jump.Key {
		out = append(out, fmt.Sprintf("through %s@%s with key %s", b.Jump.User, b.Jump.At(), b.Jump.Key))
	}
	if a.Addr != b.Addr {
		out = append(out, "address "+b.Addr)
	}
	if a.Blocks != b.Blocks {
		out = append(out, fmt.Sprintf("blocks %d", b.Blocks))
	}
	return strings.Join(out, ", ")
}

// checkHostsIdle refuses to take hosts away under jobs.
func (s *State) checkHostsIdle(f *core.Fleet, force bool, how string) error {
	if force {
		return nil
	}
	for i := range f.Hosts {
		h := &f.Hosts[i]
		if jobs := s.jobIDsOn(h.Node); h.Leaving && len(jobs) > 0 {
			return core.Errorf(core.Conflict,
				"host %s (node %s) stays: job %d runs there; wait, cancel it, or use %s, which ends what runs there",
				h.Login.Host, h.Node, jobs[0], how).Because("node_busy")
		}
	}
	return nil
}

// checkMayEndJobs refuses a manager who would end the jobs of other projects with a host of his own.
func (s *State) checkMayEndJobs(by core.Identity, project core.ProjectName, hosts []*core.FleetHost) error {
	for _, h := range hosts {
		for _, id := range s.jobIDsOn(h.Node) {
			if j, ok := s.view.Job(id); ok && !by.Admin && j.Spec.Project != project {
				return core.Errorf(core.Denied,
					"host %s (node %s) stays: job %d of another project runs there, and only an administrator ends it", h.Login.Host,
					h.Node, id).Because("access_denied")
			}
		}
	}
	return nil
}

// takeHostDown gives the node of a host that leaves no more jobs, and ends those it has.
func (s *State) takeHostDown(h *core.FleetHost) {
	_, _ = (&UpdateNode{Node: h.Node, State: "down", Reason: "it leaves its fleet", System: true}).apply(s)
}

// authorizeFleet finds a fleet that somebody may do something about: an administrator, or a manager of its project.
// Whoever may not even see it is told that it is not there.
func (s *State) authorizeFleet(by core.Identity, name, what string) (*core.Fleet, error) {
	f, ok := s.view.fleets[name]
	role := core.RoleNone
	if ok {
		role = s.view.Role(by.User, f.Project)
	}
	if by.Plain && role.Rank() > core.RoleUser.Rank() {
		role = core.RoleUser
	}
	switch {
	case !ok && by.Admin:
		return nil, core.Errorf(core.NotFound, "there is no fleet %q%s", name,
			named.Hint(name, s.view.fleets)).Because("invalid_fleet")
	case !ok || !f.SeenBy(by, role):
		return nil, core.Errorf(core.NotFound, "there is no fleet %q", name).Because("invalid_fleet")
	case by.Admin || f.Project != "" && role.Rank() >= core.RoleManager.Rank():
		return f, nil
	case f.Project != "":
		return nil, core.Errorf(core.Denied, "only a manager of project %s or an administrator %s fleet %s", f.Project, what,
			name).Because("access_denied")
	}
	return nil, people.AdminOnly(by, what+" fleets")
}

// selectHosts copies a fleet and gives the hosts that are meant by their numbers; nil means all.
func selectHosts(f *core.Fleet, nums []int32) (*core.Fleet, []*core.FleetHost, error) {
	next := *f
	next.Hosts = slices.Clone(f.Hosts)
	for _, n := range nums {
		if next.Host(n) == nil {
			return nil, nil, core.Errorf(core.NotFound, "fleet %s has no instance %d", f.Name, n).Because("invalid_fleet")
		}
	}
	var hosts []*core.FleetHost
	for i := range next.Hosts {
		if h := &next.Hosts[i]; nums == nil || slices.Contains(nums, h.Num) {
			hosts = append(hosts, h)
		}
	}
	return &next, hosts, nil
}

// authorizeFleetHosts gives a fleet as it will be, and those of its hosts that somebody who may means.
func (s *State) authorizeFleetHosts(by core.Identity, verb, name string, nums []int32) (*core.Fleet, []*core.FleetHost,
	error,
) {
	f, err := s.authorizeFleet(by, name, verb)
	if err != nil {
		return nil, nil, err
	}
	return selectHosts(f, nums)
}

func (in *DropFleet) apply(s *State) (None, error) {
	next, hosts, err := s.authorizeFleetHosts(in.By, "may delete", in.Name, in.Hosts)
	if err != nil {
		return none, err
	}
	for _, h := range hosts {
		h.Leaving = true
	}
	next.Leaving = next.Leaving || in.Hosts == nil
	if err := s.checkHostsIdle(next, in.Force, "--force"); err != nil {
		return none, err
	}
	if err := s.checkMayEndJobs(in.By, next.Project, hosts); err != nil {
		return none, err
	}
	for _, h := range hosts {
		s.takeHostDown(h)
	}
	if next.Leaving && len(next.Hosts) == 0 {
		s.deleteFleet(next)
		return none, nil
	}
	s.putFleetRecord(next, in.By.User)
	return none, nil
}

func (in *TrustFleet) apply(s *State) (None, error) {
	next, hosts, err := s.authorizeFleetHosts(in.By, "may change", in.Name, in.Hosts)
	if err != nil {
		return none, err
	}
	for _, h := range hosts {
		h.HostKey, h.JumpKey = "", ""
	}
	s.putFleetRecord(next, in.By.User)
	return none, nil
}

func (in *FleetNews) apply(s *State) (None, error) {
	f, ok := s.view.fleets[in.Fleet]
	if !ok || f.Host(in.Num) == nil {
		return none, nil // it left meanwhile
	}
	next := *f
	next.Hosts = slices.Clone(f.Hosts)
	h := next.Host(in.Num)
	if in.Gone {
		if !h.Leaving {
			return none, nil // it is wanted again
		}
		why := ""
		if in.Cause != nil {
			why = *in.Cause
		}
		s.deleteNode(h.Node, why)
		next.Hosts = slices.DeleteFunc(next.Hosts, func(o core.FleetHost) bool { return o.Num == in.Num })
		next.Keys = keysInUse(next.Keys, nil, next.Hosts)
		if next.Leaving && len(next.Hosts) == 0 {
			s.deleteFleet(&next)
			return none, nil
		}
		s.putFleetRecord(&next, "")
		return none, nil
	}
	was := *h
	for _, x := range []struct {
		to   *string
		from *string
	}{
		{&h.HostKey, in.HostKey},
		{&h.JumpKey, in.JumpKey},
		{&h.Peer, in.Peer},
		{&h.Cert, in.Cert},
		{&h.Cause, in.Cause},
		{&h.Runs, in.Runs},
	} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	if h.Cause != was.Cause {
		h.Since = s.view.now
	}
	if *h != was {
		s.putFleetRecord(&next, "")
	}
	if n, ok := s.view.Node(h.Node); ok && in.Key != "" {
		return (&NodeKey{Node: n.Name, Do: KeyPin, Key: in.Key, Roles: core.Compute, Ends: in.Ends}).apply(s)
	}
	return none, nil
}

// putFleetRecord makes a fleet the one that holds.
func (s *State) putFleetRecord(f *core.Fleet, by core.UserName) {
	ownMap(&s.owned.fleets, &s.view.fleets)
	s.view.fleets[f.Name] = f
	s.changes.Fleets = append(slices.DeleteFunc(s.changes.Fleets, func(o *core.Fleet) bool { return o.Name == f.Name }), f)
	s.event(core.FleetChanged, core.Event{By: by, Data: append(appendJSON([]byte(`{"fleet":`), f.Name), '}')})
}

func (s *State) deleteFleet(f *core.Fleet) {
	ownMap(&s.owned.fleets, &s.view.fleets)
	delete(s.view.fleets, f.Name)
	s.changes.Fleets = slices.DeleteFunc(s.changes.Fleets, func(o *core.Fleet) bool { return o.Name == f.Name })
	s.changes.GoneFleets = append(s.changes.GoneFleets, f.Name)
	s.event(core.FleetChanged, core.Event{Data: append(appendJSON([]byte(`{"gone":true,"fleet":`), f.Name), '}')})
}

// deleteNode forgets a node that is known to hold nothing any more, or that nobody can ask; why says the latter.
func (s *State) deleteNode(name core.NodeName, why string) {
	n, ok := s.view.Node(name)
	if !ok {
		return
	}
	s.loseJobsOn(name, fmt.Sprintf("node %s was removed", name))
	ownMap(&s.owned.nodeIDs, &s.view.nodeIDs)
	delete(s.view.nodeIDs, name)
	s.view.nodes.Delete(n.ID)
	delete(s.idleActions, name)
	s.ledger.DropNode(name)
	s.reservations.wakeValid = false
	s.limits.stale = true
	for _, p := range s.partitions {
		clear(p.admitCache)
	}
	s.changes.Nodes = slices.DeleteFunc(s.changes.Nodes, func(o *core.Node) bool { return o.Name == name })
	s.plannerChanges.Nodes = slices.DeleteFunc(s.plannerChanges.Nodes, func(o *core.Node) bool { return o.Name == name })
	s.changes.GoneNodes = append(s.changes.GoneNodes, name)
	s.plannerChanges.Merge(sched.Changes{GoneNodes: []core.NodeName{name}})
	data := []byte(`{"gone":true`)
	if why != "" {
		data = appendJSON(append(data, `,"reason":`...), why)
	}
	s.event(core.NodeChanged, core.Event{Node: name, Data: append(data, '}')})
}
