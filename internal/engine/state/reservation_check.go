package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/engine/state/named"
	"bireme.dev/bireme/internal/engine/state/speccheck"
	"bireme.dev/bireme/internal/sched/fit"
)

// maxStartInPast is how far in the past a reservation may begin: clocks and hands are slow.
const maxStartInPast = core.Time(60 * 1e6)

// completeReservation checks a reservation and chooses what it leaves open. old is the one it replaces, or nil.
func (s *State) completeReservation(r, old *core.AdvanceReservation) error {
	if !named.IsValid(r.Name) {
		return core.Errorf(core.Invalid, "%q is not a valid reservation name", r.Name).Because("invalid_name")
	}
	if err := cmp.Or(s.checkReservationTimes(r, old), speccheck.Reservation(r), s.checkReservationAccess(r),
		s.checkReservationLicenses(r)); err != nil {
		return err
	}
	chosen, err := s.chooseReservationNodes(r)
	if err != nil {
		return err
	}
	if o := s.findCollision(r); o != nil {
		return core.Errorf(core.Conflict, "reservation %s overlaps with %s on %s; the flag overlap allows that", r.Name,
			o.Name, s.commonNodes(r, o)).Because("reservation_overlap")
	}
	if chosen || r.Flags&core.ReserveIgnoreJobs != 0 || old != nil && r.Nodes == old.Nodes && r.Start >= old.Start {
		return nil
	}
	for _, n := range s.reservationNodes(r) {
		if id, until := s.busyUntil(n.Name); until > r.Start {
			return core.Errorf(core.Conflict,
				"node %s is in use by job %d past %s; the flag ignore_jobs allows that",
				n.Name, id, timeText(r.Start)).Because("nodes_busy")
		}
	}
	return nil
}

func timeText(t core.Time) string { return t.Go().UTC().Format("2006-01-02T15:04:05Z") }

func (s *State) checkReservationTimes(r, old *core.AdvanceReservation) error {
	bad := func(format string, args ...any) error {
		return core.Errorf(core.Invalid, format, args...).Because("invalid_time_value")
	}
	again := r.Flags & core.ReserveRepeats
	length := r.End.Sub(r.Start)
	switch {
	case r.End <= r.Start:
		return bad("reservation %s would end before it starts", r.Name)
	case (old == nil || old.Start != r.Start) && r.Start < s.rec.Now()-maxStartInPast &&
		(again == 0 || r.Flags&core.ReserveForceStart == 0):
		return bad("reservation %s would start in the past, at %s", r.Name, timeText(r.Start))
	case r.End <= s.rec.Now() && again == 0:
		return bad("reservation %s would already have ended at %s", r.Name, timeText(r.End))
	case again&(again-1) != 0:
		return bad("reservation %s would recur in two ways: %s", r.Name, again)
	case again == core.ReserveHourly && length > time.Hour, again == core.ReserveWeekly && length > 7*24*time.Hour,
		again&(core.ReserveDaily|core.ReserveWeekday|core.ReserveWeekend) != 0 && length > 24*time.Hour:
		return bad("reservation %s lasts longer than the interval at which it recurs (%s)", r.Name, again)
	case again != 0 && r.Flags&core.ReserveTimeFloat != 0:
		return bad("reservation %s cannot both float and recur", r.Name)
	case r.PurgeComp < 0 || r.MaxDelay < 0:
		return bad("times must not be negative")
	}
	return nil
}

// checkReservationAccess looks at whom a reservation is for: somebody, all of them known, and wanted or not wanted but
// not both.
func (s *State) checkReservationAccess(r *core.AdvanceReservation) error {
	if len(r.Users)+len(r.Projects)+len(r.Groups) == 0 {
		return core.Errorf(core.Invalid, "reservation %s is for nobody: give users, projects or groups",
			r.Name).Because("reservation_empty")
	}
	for _, u := range r.Users {
		name := core.UserName(strings.TrimPrefix(string(u), "-"))
		if _, ok := s.rec.User(name); !ok {
			return core.Errorf(core.Invalid, "there is no user %q%s", name,
				named.Hint(name, s.people.UsersByName())).Because("invalid_user")
		}
	}
	for _, a := range r.Projects {
		name := core.ProjectName(strings.TrimPrefix(string(a), "-"))
		if _, ok := s.rec.Project(name); !ok {
			return core.Errorf(core.Invalid, "there is no project %q%s", name,
				named.Hint(name, s.people.ProjectsByName())).Because("invalid_account")
		}
	}
	if mixesNegated(r.Users) || mixesNegated(r.Projects) {
		return core.Errorf(core.Invalid,
			"reservation %s: a list must name either those allowed or, with -, those not allowed",
			r.Name).Because("invalid_user")
	}
	return nil
}

func mixesNegated[N ~string](list []N) bool {
	not := func(n N) bool { return strings.HasPrefix(string(n), "-") }
	return slices.ContainsFunc(list, not) && slices.ContainsFunc(list, func(n N) bool { return !not(n) })
}

func (s *State) checkReservationLicenses(r *core.AdvanceReservation) error {
	for _, l := range r.Licenses {
		i := slices.IndexFunc(s.cfg.Licenses, func(o core.License) bool { return o.Name == l.Name })
		if i < 0 {
			return core.Errorf(core.Invalid, "there is no license %q", l.Name).Because("invalid_license")
		}
		left := s.cfg.Licenses[i].Total
		for _, o := range s.rec.ReservationsByName() {
			if o.Name == r.Name || !r.Meets(o, s.rec.Now(), s.cfg.Zone.Location) {
				continue
			}
			for _, has := range o.Licenses {
				if has.Name == l.Name {
					left -= has.Total
				}
			}
		}
		if l.Total <= 0 || l.Total > left {
			return core.Errorf(core.Conflict, "%d of license %s: other reservations leave %d", l.Total, l.Name,
				left).Because("invalid_license")
		}
	}
	r.Licenses = slices.SortedFunc(slices.Values(r.Licenses),
		func(a, b core.License) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// chooseReservationNodes turns what is asked for into nodes; chosen tells that they are free by then.
func (s *State) chooseReservationNodes(r *core.AdvanceReservation) (chosen bool, err error) {
	if r.Partition != "" {
		if _, ok := s.cluster.Partitions[r.Partition]; !ok {
			return false, core.Errorf(core.Invalid, "there is no partition %q", r.Partition).Because("invalid_partition")
		}
	}
	if r.Features != "" {
		if _, err := grammar.ParseConstraint(r.Features); err != nil {
			return false, core.Errorf(core.Invalid, "features: %v", err).Because("invalid_feature")
		}
	}
	if r.NodeCount < 0 || r.CoreCount < 0 {
		return false, core.Errorf(core.Invalid, "counts must not be negative").Because("invalid_node_count")
	}
	switch {
	case r.Nodes != "":
		return false, s.resolveNamedNodes(r)
	case r.NodeCount > 0 || r.CoreCount > 0:
		return true, s.chooseCountedNodes(r)
	case len(r.Licenses) > 0:
		r.Flags |= core.ReserveAnyNodes // as Slurm: nodes are free for all
		return true, nil
	}
	return false, core.Errorf(core.Invalid,
		"reservation %s is empty: give nodes, a number of nodes or cores, or licenses",
		r.Name).Because("invalid_node_count")
}

func (s *State) resolveNamedNodes(r *core.AdvanceReservation) error {
	all := strings.EqualFold(r.Nodes, "ALL")
	var nodes []*core.Node
	if all {
		r.Flags |= core.ReserveAllNodes
		for n := range s.rec.Nodes() {
			if n.Roles&core.Compute != 0 && s.cluster.InPartition(n, r.Partition) {
				nodes = append(nodes, n)
			}
		}
	} else {
		list, err := hostlist.Expand(r.Nodes, hostlist.MaxRequest)
		if err != nil {
			return core.Errorf(core.Invalid, "nodes: %v", err).Because("invalid_node")
		}
		for _, name := range list {
			n, ok := s.rec.Node(core.NodeName(name))
			switch {
			case !ok:
				return core.Errorf(core.Invalid, "there is no node %q", name).Because("invalid_node")
			case n.LoginOnly():
				return core.Errorf(core.Invalid, "node %s runs no jobs", name).Because("invalid_node")
			case !s.cluster.InPartition(n, r.Partition):
				return core.Errorf(core.Invalid, "node %s is not in partition %s", name, r.Partition).Because("invalid_node")
			}
		}
		nodes = s.reservationNodes(r)
	}
	if len(nodes) == 0 {
		return core.Errorf(core.Invalid, "reservation %s has no node", r.Name).Because("invalid_node")
	}
	if r.NodeCount == 0 || all { // a list that was chosen is not one that was named
		r.Flags |= core.ReserveSpecNodes
	}
	r.Nodes, r.NodeCount = hostlistOf(nodes), int32(len(nodes))
	return s.checkReservationCores(r, nodes)
}

// checkReservationCores tells whether nodes have the cores a reservation wants of them.
func (s *State) checkReservationCores(r *core.AdvanceReservation, nodes []*core.Node) error {
	for i, n := range nodes {
		if share := coreShare(r, i, len(nodes)); share > n.Hardware.CPUs {
			return core.Errorf(core.Invalid, "node %s has %d CPUs, not %d", n.Name, n.Hardware.CPUs,
				share).Because("invalid_node_count")
		}
	}
	return nil
}

// coreShare is what a reservation of cores has of the i-th of its nodes, in the order of the cluster's.
func coreShare(r *core.AdvanceReservation, i, of int) int32 {
	share := r.CoreCount / int32(of)
	if int32(i) < r.CoreCount%int32(of) {
		share++
	}
	return share
}

// mayOverlap tells whether reservations may overlap.
func mayOverlap(r, o *core.AdvanceReservation) bool {
	return r.Flags&(core.ReserveMaint|core.ReserveOverlap) != 0 || o.Flags&core.ReserveOverlap != 0
}

// conflictingReservations lists the reservations that r must keep out of the way of.
func (s *State) conflictingReservations(r *core.AdvanceReservation) []*core.AdvanceReservation {
	var out []*core.AdvanceReservation
	for _, o := range named.Sorted(s.rec.ReservationsByName()) {
		if o.Name != r.Name && o.Nodes != "" && !mayOverlap(r, o) && r.Meets(o, s.rec.Now(), s.cfg.Zone.Location) {
			out = append(out, o)
		}
	}
	return out
}

// findCollision finds a reservation that has what r wants at the same time. Those of cores share a node while it has
// enough.
func (s *State) findCollision(r *core.AdvanceReservation) *core.AdvanceReservation {
	if r.Nodes == "" {
		return nil
	}
	taken := map[core.NodeName]int32{}
	mine := s.reservationNodes(r)
	for i, n := range mine {
		taken[n.Name] = n.Hardware.CPUs
		if r.CoreCount > 0 {
			taken[n.Name] = coreShare(r, i, len(mine))
		}
	}
	for _, o := range s.conflictingReservations(r) {
		theirs := s.reservationNodes(o)
		for i, n := range theirs {
			has, both := taken[n.Name]
			if !both {
				continue
			}
			share := n.Hardware.CPUs
			if o.CoreCount > 0 {
				share = coreShare(o, i, len(theirs))
			}
			if has+share > n.Hardware.CPUs || r.CoreCount == 0 || o.CoreCount == 0 {
				return o
			}
			taken[n.Name] = has + share
		}
	}
	return nil
}

// commonNodes lists the nodes that two reservations have.
func (s *State) commonNodes(r, o *core.AdvanceReservation) string {
	in := s.cluster.Expand(o.Nodes)
	return hostlistOf(slices.DeleteFunc(s.reservationNodes(r), func(n *core.Node) bool { return !in[n.Name] }))
}

// forever is later than any job ends.
const forever = core.Time(1<<63 - 1)

// busyUntil tells when the last job on a node ends, by its limit, and which that is; 0 of a node without one.
func (s *State) busyUntil(name core.NodeName) (id core.JobID, until core.Time) {
	for _, j := range s.cluster.JobIDsOn(name) {
		job, _ := s.rec.Job(j)
		end := forever
		if l := job.Spec.TimeLimit; job.State == core.Running && l > 0 && l != core.Forever {
			end = job.Start.Add(l.Duration() + job.PausedFor)
		} else if job.End != 0 {
			end = job.End
		}
		if end > until {
			id, until = j, end
		}
	}
	return id, until
}

// candidate is a node a reservation could have.
type candidate struct {
	node *core.Node
	free core.Time // when its last job ends; 0: it is idle
}

// reservationCandidates lists the nodes r could have, those that are free soonest first; not are those it must not
// take.
func (s *State) reservationCandidates(r *core.AdvanceReservation, not map[core.NodeName]bool) []candidate {
	taken := map[core.NodeName]bool{}
	for _, o := range s.conflictingReservations(r) {
		for _, n := range s.reservationNodes(o) {
			taken[n.Name] = true
		}
	}
	var out []candidate
	for n := range s.rec.Nodes() {
		if !n.Usable() || taken[n.Name] || not[n.Name] || !s.cluster.InPartition(n, r.Partition) ||
			!fit.MeetsConstraint(r.Features, n) {
			continue
		}
		_, free := s.busyUntil(n.Name)
		if free > max(r.Start, s.rec.Now()) && r.Flags&core.ReserveIgnoreJobs == 0 {
			continue
		}
		out = append(out, candidate{n, free})
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.node.Weight, b.node.Weight))
	})
	return out
}

// chooseCountedNodes chooses nodes for a count of them, or of cores.
func (s *State) chooseCountedNodes(r *core.AdvanceReservation) error {
	if r.Partition == "" {
		r.Partition = s.cluster.DefaultPartition()
	}
	var nodes []*core.Node
	var cpus int32
	for _, c := range s.reservationCandidates(r, nil) {
		if r.NodeCount > 0 && len(nodes) == int(r.NodeCount) || r.NodeCount == 0 && cpus >= r.CoreCount {
			break
		}
		nodes = append(nodes, c.node)
		cpus += c.node.Hardware.CPUs
	}
	if len(nodes) < int(r.NodeCount) || cpus < r.CoreCount {
		return core.Errorf(core.Conflict,
			"partition %s has %d nodes (%d CPUs) for reservation %s: "+
				"the others are in use by jobs or reservations, down, or not of its features",
			r.Partition, len(nodes), cpus, r.Name).Because("nodes_busy")
	}
	slices.SortFunc(nodes, func(a, b *core.Node) int { return cmp.Compare(a.ID, b.ID) })
	r.Nodes, r.NodeCount = hostlistOf(nodes), int32(len(nodes))
	return s.checkReservationCores(r, nodes)
}
