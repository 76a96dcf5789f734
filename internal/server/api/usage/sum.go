package usage

import (
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/server/api/view"
	"bireme.dev/bireme/internal/store"
)

// key is what jobs are added up by.
type key struct {
	project core.ProjectName
	user    core.UserName
	wckey   string
	cpus    int32
}

// amounts are resources, or resources multiplied by microseconds.
type amounts struct {
	jobs             int64
	cpu, mem, nodes  float64 // mem in MiB
	gres             map[string]float64
	gresName, gresNo string // of what was added last: most jobs have the same
}

// addTimes adds k times what an allocation holds.
func (x *amounts) addTimes(al *core.Alloc, k float64) {
	for i := range al.Nodes {
		n := &al.Nodes[i]
		x.cpu += k * float64(n.CPUs)
		x.mem += k * float64(n.Mem/core.MiB)
		x.nodes += k
		for _, g := range n.Gres {
			x.addGres(g.Name, k*float64(len(g.Units)))
		}
	}
}

func (x *amounts) addGres(name string, n float64) {
	if x.gres == nil {
		x.gres = map[string]float64{}
	}
	if x.gresNo != name {
		x.gresName, x.gresNo = "gres/"+name, name
	}
	x.gres[x.gresName] += n
}

// addNode adds k times a node's hardware.
func (x *amounts) addNode(n *core.Node, k float64) {
	x.cpu += k * float64(n.Hardware.CPUs)
	x.mem += k * float64(n.Hardware.Memory/core.MiB)
	x.nodes += k
	for _, g := range n.Hardware.Gres {
		x.addGres(g.Name, k*float64(g.Count))
	}
}

// per divides: into seconds by perSecond, into plain amounts by 1.
func (x *amounts) per(unit float64) core.TRES {
	list := []core.Amount{
		{Name: "cpu", Count: round(x.cpu / unit)},
		{Name: "mem", Count: round(x.mem / unit)},
		{Name: "node", Count: round(x.nodes / unit)},
		{Name: "billing", Count: round(x.cpu / unit)},
	}
	for name, n := range x.gres {
		list = append(list, core.Amount{Name: name, Count: round(n / unit)})
	}
	return core.TRESOf(list...)
}

func (x *amounts) tres() core.TRES { return x.per(perSecond) }

const perSecond = float64(time.Second / time.Microsecond)

func round(n float64) int64 { return int64(n + 0.5) }

// sum adds up jobs.
type sum struct {
	q         query
	rows      map[key]*amounts
	allocated amounts
	waited    float64          // CPUs × microseconds
	inside    map[int]*amounts // by position in past
	busy      map[int]float64  // microseconds that jobs ran in it, likewise
	past      []*core.AdvanceReservation
}

func newSum(q query, past []*core.AdvanceReservation) *sum {
	return &sum{q: q, rows: map[key]*amounts{}, inside: map[int]*amounts{}, busy: map[int]float64{}, past: past}
}

// overlap is how much of [from, until) is in the window, in microseconds.
func (q *query) overlap(from, until core.Time) core.Time {
	return max(0, min(until, q.end)-max(from, q.start))
}

// wait adds the time that a job could have run and waited.
func (s *sum) wait(from, until core.Time, cpus int32) {
	if from != 0 {
		s.waited += float64(s.q.overlap(from, until)) * float64(cpus)
	}
}

// add adds a job, with its attempts that went back to the queue.
func (s *sum) add(u *store.JobUsage) {
	s.addAttempt(u, u.Alloc, u.Start, u.End, u.PausedFor)
	if u.Earlier == nil {
		return
	}
	for i := range u.Earlier.Attempts {
		if e := &u.Earlier.Attempts[i]; e.Start != u.Start {
			s.addAttempt(u, e.Alloc, e.Start, e.End, int64(e.PausedFor))
		}
	}
}

// addAttempt adds a time that a job ran.
func (s *sum) addAttempt(u *store.JobUsage, al *core.Alloc, start, end core.Time, paused int64) {
	if start == 0 || al == nil {
		return
	}
	if end == 0 {
		end = s.q.end
	}
	micros := float64(s.q.overlap(start, end))
	if length := float64(end - start); paused > 0 && length > 0 { // when it was suspended is not known
		micros *= max(0, 1-float64(paused)/1000/length)
	}
	k := key{project: u.Project, user: u.User, wckey: u.WCKey}
	for i := range al.Nodes {
		k.cpus += al.Nodes[i].CPUs
	}
	if start == u.Start {
		s.wait(u.Eligible, start, k.cpus)
	}
	if micros <= 0 {
		return
	}
	s.allocated.addTimes(al, micros)
	if name := al.Inside(); name != "" {
		s.addInside(name, al, start, micros)
	}
	if !s.q.wants(u, al) {
		return
	}
	x := s.rows[k]
	if x == nil {
		x = &amounts{}
		s.rows[k] = x
	}
	x.jobs++
	x.addTimes(al, micros)
}

// addInside adds what a job used of the reservation that it ran in: the occurrence that it began in.
func (s *sum) addInside(name string, al *core.Alloc, start core.Time, micros float64) {
	for i, r := range s.past {
		if r.Name == name && start < r.End && start >= r.Start {
			x := s.inside[i]
			if x == nil {
				x = &amounts{}
				s.inside[i] = x
			}
			x.addTimes(al, micros)
			s.busy[i] += micros
			return
		}
	}
}

// chargeIdle charges what reservations left idle to those they were for, in equal parts, as Slurm does: all of it for
// as long as no job ran in it.
func (s *sum) chargeIdle(v *view.Viewer) {
	for i, r := range s.past {
		if r.Flags&core.ReserveMaint != 0 {
			continue
		}
		idle := float64(s.q.overlap(r.Start, r.End)) - s.busy[i]
		list := v.ReservedFor(r)
		if idle <= 0 || len(list) == 0 {
			continue
		}
		size := reserved(v, r)
		for _, m := range list {
			k := key{project: m.Project, user: m.User, cpus: -1}
			x := s.rows[k]
			if x == nil {
				x = &amounts{}
				s.rows[k] = x
			}
			x.cpu += size.cpu * idle / float64(len(list))
		}
	}
}

// reservations gives what was used of the occurrences that the viewer sees.
func (s *sum) reservations(v *view.Viewer, past []*core.AdvanceReservation) []client.ReservationUsage {
	out := []client.ReservationUsage{}
	for i, r := range past {
		if !v.SeesPast(r) {
			continue
		}
		size := reserved(v, r)
		total := size
		scale(&total, float64(s.q.overlap(r.Start, r.End)))
		used := s.inside[i]
		if used == nil {
			used = &amounts{}
		}
		out = append(out, client.ReservationUsage{
			AdvanceReservation: *r, Size: size.per(1), Total: total.tres(), Used: used.tres(),
		})
	}
	return out
}

// reserved is the size of a reservation: its nodes as they are now, or its cores.
func reserved(v *view.Viewer, r *core.AdvanceReservation) (x amounts) {
	names, err := hostlist.Expand(r.Nodes, maxNodes)
	if err != nil {
		return x
	}
	for _, name := range names {
		if n, ok := v.Snap.Node(core.NodeName(name)); ok {
			x.addNode(n, 1)
		}
	}
	if r.CoreCount > 0 {
		x.cpu = float64(r.CoreCount)
	}
	return x
}

const maxNodes = 1 << 18

func scale(x *amounts, k float64) {
	gres := x.gres
	x.cpu, x.mem, x.nodes, x.gres = x.cpu*k, x.mem*k, x.nodes*k, nil
	for name, n := range gres {
		x.addGres(name[len("gres/"):], n*k)
	}
}
