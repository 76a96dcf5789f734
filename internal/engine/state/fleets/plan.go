package fleets

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/named"
)

// NodeFunc finds a node.
type NodeFunc func(core.NodeName) (*core.Node, bool)

// Plan works out the record of a fleet as its user wants it, and how it differs from the present one.
func (r *Registry) Plan(wanted *core.Fleet, by core.UserName, now core.Time,
	projects map[core.ProjectName]*core.Project, node NodeFunc,
) (next *core.Fleet, plan *core.FleetPlan, err error) {
	old, known := r.t.fleets[wanted.Name]
	if known && old.Leaving {
		return nil, nil, core.Errorf(core.Conflict, "fleet %s is being deleted: wait until it is gone",
			old.Name).Because("fleet_leaving")
	}
	c := *wanted
	next = &c
	plan = &core.FleetPlan{Action: "create"}
	if known {
		next.By, next.Created, next.Next, plan.Action = old.By, old.Created, old.Next, "update"
		next.Project = cmp.Or(next.Project, old.Project)
	} else {
		next.By, next.Created, next.Next = by, now, 0
	}
	if _, ok := projects[next.Project]; !ok && next.Project != "" {
		return nil, nil, core.Errorf(core.Invalid, "there is no project %q%s", next.Project,
			named.Hint(next.Project, projects)).Because("invalid_project")
	}
	if err := r.assignHosts(next, old, plan, node); err != nil {
		return nil, nil, err
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
	if known && next.Spec != "" && old.Spec != next.Spec {
		plan.Changed = append(plan.Changed, "configuration")
	}
	if known && len(plan.Added)+len(plan.Removed)+len(plan.Changed) == 0 {
		plan.Action = "none"
	}
	return next, plan, nil
}

// assignHosts numbers the hosts of a fleet. Hosts that were in it keep their numbers and what is known of them; hosts
// that are no longer named are marked leaving.
func (r *Registry) assignHosts(next, old *core.Fleet, plan *core.FleetPlan, node NodeFunc) error {
	taken := map[string]string{} // fleet by place of the host
	for _, f := range named.Sorted(r.t.fleets) {
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
		if n, ok := node(h.Node); ok && n.Fleet != next.Name {
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
	next.Keys = KeysInUse(next.Keys, old, hosts)
	next.Hosts = hosts
	return nil
}

// KeysInUse keeps the keys that some host is reached with, those of leaving hosts included.
func KeysInUse(keys []core.FleetKey, old *core.Fleet, hosts []core.FleetHost) []core.FleetKey {
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

// describeHostChange describes how a host differs; empty: it does not.
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

// SelectHosts copies a fleet and returns the hosts with these numbers in the copy; nil: all.
func SelectHosts(f *core.Fleet, nums []int32) (*core.Fleet, []*core.FleetHost, error) {
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

// AuthorizeHosts returns a copy of a fleet that the caller may change, and the hosts with these numbers in it; nil:
// all.
func (r *Registry) AuthorizeHosts(by core.Identity, verb, name string, nums []int32,
	role func(core.UserName, core.ProjectName) core.Role,
) (*core.Fleet, []*core.FleetHost, error) {
	f, err := r.Authorize(by, name, verb, role)
	if err != nil {
		return nil, nil, err
	}
	return SelectHosts(f, nums)
}
