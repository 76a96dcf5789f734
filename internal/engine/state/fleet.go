package state

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/fleets"
	"bireme.dev/bireme/internal/engine/state/people"
)

// Inputs about fleets.
type (
	// PutFleet creates a fleet, or changes one in place: hosts are identified by their place, and those that are no longer
	// named leave. Reply: *core.FleetPlan.
	PutFleet struct {
		By    core.Identity
		Fleet *core.Fleet // as the user wants it: Num, Node and what is found out are filled in
		Force bool        // hosts leave although jobs run on them
		Dry   bool        // only report what would change
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
	next, plan, err := s.fleets.Plan(in.Fleet, in.By.User, s.rec.Now(), s.people.ProjectsByName(), s.rec.Node)
	if err != nil {
		return nil, err
	}
	if err := fleets.CheckIdle(next, in.Force, "--force", s.cluster.JobIDsOn); err != nil {
		return nil, err
	}
	if err := fleets.CheckBlocks(next, s.rec.Node); err != nil {
		return nil, err
	}
	if in.Dry || plan.Action == "none" {
		return plan, nil
	}
	for i := range next.Hosts {
		h := &next.Hosts[i]
		if was, ok := s.rec.Node(h.Node); !ok || was.Fleet != next.Name {
			s.nodes.Put(&core.Node{
				Name: h.Node, Fleet: next.Name, Project: next.Project, Roles: core.Compute, Weight: 1,
			})
		}
		if h.Leaving {
			s.nodes.TakeDown(h.Node, "it leaves its fleet")
		}
	}
	s.fleets.Store(next, in.By.User)
	s.nodes.FollowFleet(next)
	return plan, nil
}

func (in *DropFleet) apply(s *State) (None, error) {
	next, hosts, err := s.fleets.AuthorizeHosts(in.By, "may delete", in.Name, in.Hosts, s.rec.Role)
	if err != nil {
		return none, err
	}
	for _, h := range hosts {
		h.Leaving = true
	}
	next.Leaving = next.Leaving || in.Hosts == nil
	if err := fleets.CheckIdle(next, in.Force, "--force", s.cluster.JobIDsOn); err != nil {
		return none, err
	}
	if err := in.checkMayEndJobs(s, next.Project, hosts); err != nil {
		return none, err
	}
	for _, h := range hosts {
		s.nodes.TakeDown(h.Node, "it leaves its fleet")
	}
	if next.Leaving && len(next.Hosts) == 0 {
		s.fleets.Delete(next)
		return none, nil
	}
	s.fleets.Store(next, in.By.User)
	return none, nil
}

func (in *TrustFleet) apply(s *State) (None, error) {
	next, hosts, err := s.fleets.AuthorizeHosts(in.By, "may change", in.Name, in.Hosts, s.rec.Role)
	if err != nil {
		return none, err
	}
	for _, h := range hosts {
		h.HostKey, h.JumpKey = "", ""
	}
	s.fleets.Store(next, in.By.User)
	return none, nil
}

func (in *FleetNews) apply(s *State) (None, error) {
	f, ok := s.rec.Fleet(in.Fleet)
	if !ok || f.Host(in.Num) == nil {
		return none, nil // it left meanwhile
	}
	next := fleets.Clone(f)
	h := next.Host(in.Num)
	if in.Gone {
		if !h.Leaving {
			return none, nil // it is wanted again
		}
		why := ""
		if in.Cause != nil {
			why = *in.Cause
		}
		s.nodes.Delete(h.Node, why)
		next.Hosts = slices.DeleteFunc(next.Hosts, func(o core.FleetHost) bool { return o.Num == in.Num })
		next.Keys = fleets.KeysInUse(next.Keys, nil, next.Hosts)
		if next.Leaving && len(next.Hosts) == 0 {
			s.fleets.Delete(next)
			return none, nil
		}
		s.fleets.Store(next, "")
		return none, nil
	}
	news := fleets.HostNews{
		HostKey: in.HostKey, JumpKey: in.JumpKey, Peer: in.Peer, Cert: in.Cert, Cause: in.Cause,
		Runs: in.Runs,
	}
	if news.Apply(h, s.rec.Now()) {
		s.fleets.Store(next, "")
	}
	if n, ok := s.rec.Node(h.Node); ok && in.Key != "" {
		return (&NodeKey{Node: n.Name, Do: KeyPin, Key: in.Key, Roles: core.Compute, Ends: in.Ends}).apply(s)
	}
	return none, nil
}

// checkMayEndJobs refuses a manager whose removal of a host would end jobs of other projects.
func (in *DropFleet) checkMayEndJobs(s *State, project core.ProjectName, hosts []*core.FleetHost) error {
	for _, h := range hosts {
		for _, id := range s.cluster.JobIDsOn(h.Node) {
			if j, ok := s.rec.Job(id); ok && !in.By.Admin && j.Spec.Project != project {
				return core.Errorf(core.Denied,
					"host %s (node %s) stays: job %d of another project runs there, and only an administrator ends it", h.Login.Host,
					h.Node, id).Because("access_denied")
			}
		}
	}
	return nil
}

// ResealFleet puts what is sealed in a fleet under another key. Nobody but the server itself asks for it. Reply: nil.
type ResealFleet struct {
	Name  string
	Texts map[string]string // sealed texts as they are, and as they will be; one that has changed meanwhile stays
	Runs  map[string]string // likewise for FleetHost.Runs: what an agent was started with names the sealed text
}

func (*ResealFleet) input() {}

func (in *ResealFleet) apply(s *State) (None, error) {
	f, ok := s.rec.Fleet(in.Name)
	if !ok {
		return none, nil // it left meanwhile
	}
	next, changed := fleets.Reseal(f, in.Texts, in.Runs)
	if changed {
		s.fleets.Store(next, "")
	}
	return none, nil
}
