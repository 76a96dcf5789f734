package forecast

import (
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/policy"
	"bireme.dev/bireme/internal/sched/advance"
	"bireme.dev/bireme/internal/sched/alloc"
	"bireme.dev/bireme/internal/sched/ledger"
)

// limits is what a model counts beside nodes: advance reservations, licenses and limits. As in a pass, jobs that wait
// for these block nobody.
type limits struct {
	advances     []*advance.Reservation // of whole nodes
	advanceTimes []core.Time            // when one of them begins or ends, in order
	tally        *policy.Tally          // nil: there are no limits
	gates        []*policy.Gate         // of jobs, from 1
	gateIndex    map[policy.Who]int32
}

// modelRelease is what a job returns at its end beside nodes.
type modelRelease struct {
	limitUses []*policy.Use
	licenses  []core.License
	copies    int64
}

// maxAdvanceTimes is how many windows of an advance reservation a forecast knows.
const maxAdvanceTimes = 4

func (m *Model) initLimits() {
	m.gateIndex, m.gates = map[policy.Who]int32{}, make([]*policy.Gate, 1)
	for _, r := range m.Advances {
		if r.Nodes == nil || r.IsPartial() {
			continue
		}
		m.advances = append(m.advances, r)
		for _, w := range r.Windows[:min(maxAdvanceTimes, len(r.Windows))] {
			for _, t := range []core.Time{w.Start, w.End} {
				if t > m.now && t != alloc.Never {
					m.advanceTimes = append(m.advanceTimes, t)
				}
			}
		}
	}
	slices.Sort(m.advanceTimes)
	m.advanceTimes = slices.Compact(m.advanceTimes)
	if m.Rules != nil {
		m.tally = policy.NewTally(m.Rules)
	}
}

// gate returns the number of a job's limits; 0: it has none.
func (m *Model) gate(g *policy.Gate) int32 {
	if g == nil || m.tally == nil {
		return 0
	}
	i, ok := m.gateIndex[g.Who]
	if !ok {
		i = int32(len(m.gates))
		m.gates = append(m.gates, m.tally.Gate(g.Who))
		m.gateIndex[g.Who] = i
	}
	return i
}

// bookRunning books what a running job has beside its nodes; nil: nothing.
func (m *Model) bookRunning(h *ledger.Allocation, end core.Time) *modelRelease {
	var b modelRelease
	for _, l := range h.Alloc.Licenses() {
		m.Licenses[l.Name] -= l.Total
	}
	b.licenses, b.copies = h.Alloc.Licenses(), 1
	if m.tally != nil && h.Job != nil && h.Job.End == 0 {
		s := h.Job.Spec
		who := policy.Who{Project: s.Project, User: s.User, QOS: s.QOS}
		for _, part := range m.Partitions {
			if part.Name == h.Alloc.Partition {
				who.PartitionQOS = part.QOS
			}
		}
		if g := m.tally.Gate(who); g != nil {
			all, node := alloc.AllocatedTRES(h.Alloc)
			if end == alloc.Never {
				end = 0
			}
			b.limitUses = append(b.limitUses, m.tally.Start(g, m.Rules.Request(all, node, h.Alloc.Partition), end))
		}
	}
	if len(b.licenses)+len(b.limitUses) == 0 {
		return nil
	}
	return &b
}

// release returns what a job that ended had beside its nodes.
func (m *Model) release(b *modelRelease) {
	if b == nil {
		return
	}
	for _, l := range b.licenses {
		m.Licenses[l.Name] += l.Total * b.copies
	}
	for _, s := range b.limitUses {
		m.tally.End(s)
	}
}

// isLimited reports whether a job needs something beside nodes that may not be free.
func (m *Model) isLimited(j *modelJob, c *modelClass) bool {
	return j.gate != 0 || c.licenses != nil
}

// allowsStart reports whether limits and licenses let a job start in this event.
func (m *Model) allowsStart(j *modelJob, c *modelClass) bool {
	if j.gate != 0 {
		if g := m.gates[j.gate]; g != nil && m.tally.Blocks(g, c.limitRequest, j.timeLimit, m.eventTime, m.Shares,
			int64(m.events)) {
			return false
		}
	}
	return c.licenses == nil || m.freeLicenses(c.licenses) != nil
}

// freeLicenses returns the licenses that a request gets, or nil if they are not free.
func (m *Model) freeLicenses(ask *core.LicenseRequest) []core.License {
	for i := range ask.List {
		left := m.Licenses[ask.List[i].Name]
		if storage.OfLicense(ask.List[i].Name) != "" { // those have no total: of each there is one
			left++
		}
		free := left >= ask.List[i].Total
		if free && ask.Any {
			return ask.List[i : i+1]
		}
		if !free && !ask.Any {
			return nil
		}
	}
	if ask.Any {
		return nil
	}
	return ask.List
}

// bookStart books what a job that starts has beside its nodes.
func (m *Model) bookStart(j *modelJob, c *modelClass) *modelRelease {
	if !m.isLimited(j, c) {
		return nil
	}
	b := &modelRelease{copies: 1}
	if c.licenses != nil {
		b.licenses = m.freeLicenses(c.licenses)
		for _, l := range b.licenses {
			m.Licenses[l.Name] -= l.Total
		}
	}
	if g := m.gates[j.gate]; j.gate != 0 && g != nil {
		end := alloc.AddTime(m.eventTime, j.timeLimit)
		if end == alloc.Never {
			end = 0
		}
		b.limitUses = append(b.limitUses, m.tally.Start(g, c.limitRequest, end))
	}
	return b
}

// advanceAllows reports whether advance reservations let a job of a class run on the nodes of a pool between two times.
func (m *Model) advanceAllows(c *modelClass, pool *nodePool, from, end core.Time) bool {
	inside := false
	for _, r := range pool.advances {
		if slices.Contains(c.advances, r) {
			if _, fits := r.WindowFor(from, end); r.ConfinesTime() && !fits {
				return false
			}
			inside = true
		} else if r.Overlaps(from, end, 0) {
			return false
		}
	}
	return inside || !c.confined
}
