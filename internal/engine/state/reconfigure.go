package state

import (
	"fmt"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state/live"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/people"
	"bireme.dev/bireme/internal/engine/state/policyset"
)

// apply makes another config the one that holds, as if the state had been built with it: nothing that was derived
// from the old one stays. It is checked first against what is there.
func (in *Reconfigure) apply(s *State) (*Reconfigured, error) {
	if err := people.AdminOnly(in.By, "may change the settings"); err != nil {
		return nil, err
	}
	cfg := in.Config
	cfg.SetDefaults()
	cfg.Unkept = s.cfg.Unkept
	if err := in.check(s, &cfg); err != nil {
		return nil, err
	}
	out := &Reconfigured{Changes: in.changes(s, &cfg)}
	if in.Dry {
		return out, nil
	}
	for _, r := range staleReservations(s, &cfg) {
		_ = s.reservations.Delete(in.By, r.Name) // an administrator asks, and nothing runs in it
	}
	s.limits.Current()
	s.charges.ReadAll()
	for _, n := range in.Nodes {
		s.nodes.Put(n)
	}
	for _, name := range in.GoneNodes {
		in.removeNode(s, name)
	}
	s.cfg = cfg
	s.rec.ConfigChanged()
	s.cluster.Reset()
	s.charges.ConfigChanged()
	s.rederive()
	s.charges.Recompute()
	s.ranking.Reset()
	s.limits.Current()
	s.preemption.Refresh()
	s.resendAll()
	s.rec.Event(core.ConfigChanged, core.Event{By: in.By.User})
	return out, nil
}

// rederive derives again what goes by the config and by what is there: the ledger, and when time ends interactive jobs.
func (s *State) rederive() {
	s.cluster.Refill()
	s.nodes.ResetTimers()
	s.reservations.ClusterChanged()
	s.deadlines.Reset()
	s.preemption.Rules = nil
}

// resendAll tells the planner to begin again with all there is.
func (s *State) resendAll() {
	cfg := PlannerConfig(s.cfg)
	c := s.All()
	c.NewConfig = &cfg
	c.Jobs, c.Nodes, c.Reservations, c.Meters = slices.Clip(c.Jobs), slices.Clip(c.Nodes), slices.Clip(c.Reservations),
		slices.Clip(c.Meters)
	s.rec.TellPlannerAll(c)
}

// check says what of the things that are there a config leaves no place for.
func (in *Reconfigure) check(s *State, cfg *Config) error {
	parts := map[core.PartitionName]bool{}
	var faults []core.Fault
	bad := func(path, format string, args ...any) {
		faults = append(faults, core.Fault{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	for i := range cfg.Partitions {
		p := &cfg.Partitions[i]
		parts[p.Name] = true
		if _, ok := s.rec.QOSByName()[p.QOS]; p.QOS != "" && !ok {
			bad("partitions", "partition %s: there is no QOS %q%s", p.Name, p.QOS, named.Hint(p.QOS, s.rec.QOSByName()))
		}
	}
	for _, old := range s.cfg.Partitions {
		if parts[old.Name] {
			continue
		}
		if id := jobInPartition(s.rec, old.Name); id != 0 {
			bad("partitions", "partition %s cannot be removed: job %d is in it", old.Name, id)
		}
		for _, r := range named.Sorted(s.rec.ReservationsByName()) {
			if r.Partition == old.Name {
				bad("partitions", "partition %s cannot be removed: reservation %s has its nodes", old.Name, r.Name)
			}
		}
	}
	for _, r := range staleReservations(s, cfg) {
		if jobInReservation(s.rec, r.Name) != 0 {
			bad("licenses", "reservation %s has licenses that are no longer there, and jobs run in it", r.Name)
		}
	}
	if len(faults) == 0 {
		return nil
	}
	e := core.Errorf(core.Conflict, "the settings conflict with the present state: %s",
		faults[0].Message).Because("invalid_configuration")
	if n := len(faults) - 1; n > 0 {
		e.Message += fmt.Sprintf(" (and %d more)", n)
	}
	e.Faults = faults
	return e
}

// staleReservations are those with licenses that a config does not have, or has fewer of. They go, as in Slurm.
func staleReservations(s *State, cfg *Config) (out []*core.AdvanceReservation) {
	for _, r := range named.Sorted(s.rec.ReservationsByName()) {
		if slices.ContainsFunc(r.Licenses, func(l core.License) bool {
			i := slices.IndexFunc(cfg.Licenses, func(o core.License) bool { return o.Name == l.Name })
			return i < 0 || cfg.Licenses[i].Total < l.Total
		}) {
			out = append(out, r)
		}
	}
	return out
}

// jobInPartition finds a live job that names a partition, or runs in it.
func jobInPartition(rec *live.Records, name core.PartitionName) core.JobID {
	for j := range rec.Jobs() {
		if j.Alloc != nil && j.Alloc.Partition == name || j.Spec.Partition.Has(name) {
			return j.ID
		}
	}
	return 0
}

// jobInReservation finds a job that runs in an advance reservation.
func jobInReservation(rec *live.Records, name string) core.JobID {
	for j := range rec.Jobs() {
		if j.Alloc.Inside() == name && j.End == 0 {
			return j.ID
		}
	}
	return 0
}

// changes lists what a config changes of partitions, licenses and nodes.
func (in *Reconfigure) changes(s *State, cfg *Config) []core.PolicyChange {
	out := []core.PolicyChange{}
	add := func(was, is any, isNew bool, format string, args ...any) {
		if c, any := policyset.Change(was, is, isNew, fmt.Sprintf(format, args...)); any {
			out = append(out, c)
		}
	}
	old := map[core.PartitionName]*core.Partition{}
	for i := range s.cfg.Partitions {
		old[s.cfg.Partitions[i].Name] = &s.cfg.Partitions[i]
	}
	for i := range cfg.Partitions {
		p := &cfg.Partitions[i]
		was, ok := old[p.Name]
		add(was, p, !ok, "partition %s", p.Name)
		delete(old, p.Name)
	}
	for _, p := range named.Sorted(old) {
		add(p, nil, false, "partition %s", p.Name)
	}
	licenses := map[string]core.License{}
	for _, l := range s.cfg.Licenses {
		licenses[l.Name] = l
	}
	for _, l := range cfg.Licenses {
		was, ok := licenses[l.Name]
		add(was, l, !ok, "license %s", l.Name)
		delete(licenses, l.Name)
	}
	for _, l := range named.Sorted(licenses) {
		add(l, nil, false, "license %s", l.Name)
	}
	for _, r := range staleReservations(s, cfg) {
		add(r, nil, false, "reservation %s", r.Name)
	}
	offers := map[string]core.Offer{}
	for _, o := range s.cfg.Offers {
		offers[o.Name] = o
	}
	for _, o := range cfg.Offers {
		was, ok := offers[o.Name]
		add(was, o, !ok, "offer %s", o.Name)
		delete(offers, o.Name)
	}
	for _, o := range named.Sorted(offers) {
		add(o, nil, false, "offer %s", o.Name)
	}
	for _, n := range in.Nodes {
		was, ok := s.rec.Node(n.Name)
		if !ok {
			add(nil, nodeSettings{Weight: n.Weight, Features: n.Features}, true, "node %s", n.Name)
			continue
		}
		add(nodeSettings{was.Weight, was.Features}, nodeSettings{n.Weight, n.Features}, false, "node %s", n.Name)
	}
	for _, name := range in.GoneNodes {
		if n, ok := s.rec.Node(name); ok && !n.Leaving && s.rec.FleetHost(n) == nil {
			was := *n
			was.Pin = nil
			add(&was, nil, false, "node %s", name)
		}
	}
	return out
}

// nodeSettings are what a config says of a node that is there.
type nodeSettings struct {
	Weight   int32    `json:"weight"`
	Features []string `json:"features,omitempty"`
}

// removeNode removes a node that is not in the file any more: at once one that was never heard of or has no
// jobs, the others when they have none.
func (in *Reconfigure) removeNode(s *State, name core.NodeName) {
	n, ok := s.rec.Node(name)
	if !ok || n.Leaving || s.rec.FleetHost(n) != nil {
		return
	}
	if !n.Flags.Has(core.NodeUnknown) || len(s.cluster.OnNode(name)) > 0 {
		s.nodes.RemoveWhenEmpty(n, in.By.User, false, false)
		return
	}
	s.rec.DeleteNode(n)
	s.rec.Event(core.NodeChanged, core.Event{Node: name, Data: []byte(`{"gone":true}`)})
}
