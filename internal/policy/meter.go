package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Meter is what a user's jobs in an account have used up to a moment, and what those that run add every second. It is a
// value, made again when a job starts or ends: between, everything follows from it.
type Meter struct {
	Project core.ProjectName
	User    core.UserName
	At      core.Time
	All     Reading
	QOS     []QOSReading // of it, by name
}

// QOSReading is the part of a meter that was used with a QOS.
type QOSReading struct {
	Name    core.QOSName
	NoDecay bool
	Reading
}

// Reading is amounts used and the rates at which they grow. Rates count millionths, so that usage factors are whole
// numbers and what starts and ends adds up to nothing.
type Reading struct {
	Raw, Wall         float64 // billing × seconds, seconds of jobs
	RawRate, WallRate int64   // of these, a second
	TRES              []Flow  // by name
}

// Flow is so many unit-seconds of a resource, and what is added a second.
type Flow struct {
	Name    string
	Seconds float64
	Rate    int64
}

// Micro is what a rate of one is.
const Micro = 1_000_000

// grown is what becomes of a value in some time in which rate was added every second. What is added decays from its own
// moment on, so it does not matter into how many steps the time is cut.
type grown struct {
	left float64 // of what there was
	gain float64 // of a rate of one
}

func growth(halfLife core.Seconds, passed time.Duration) grown {
	g := grown{left: 1}
	if passed <= 0 {
		return g
	}
	if halfLife <= 0 || halfLife == core.Forever {
		g.gain = passed.Seconds()
		return g
	}
	g.left = Decay(halfLife, passed)
	g.gain = (1 - g.left) / -math.Log1p(-0.693/float64(max(2, halfLife)))
	return g
}

func (g grown) of(value float64, rate int64) float64 {
	return max(0, value*g.left+float64(rate)/Micro*g.gain)
}

// since is what becomes of a value of the moment at: after the last reset nothing of it is left.
func (s *Setting) since(at, now core.Time, keep bool) grown {
	half := s.HalfLife
	if keep {
		half = 0
	}
	if from := s.Reset.Began(now); from > at {
		g := growth(half, now.Sub(from))
		g.left = 0
		return g
	}
	return growth(half, now.Sub(at))
}

// Read gives a meter as it stands at a later moment.
func (s *Setting) Read(m *Meter, now core.Time) *Meter {
	out := &Meter{Project: m.Project, User: m.User, At: max(now, m.At), All: m.All.after(s.since(m.At, now, false))}
	out.QOS = make([]QOSReading, len(m.QOS))
	for i := range m.QOS {
		q := &m.QOS[i]
		out.QOS[i] = QOSReading{q.Name, q.NoDecay, q.after(s.since(m.At, now, q.NoDecay))}
	}
	return out
}

func (r *Reading) after(g grown) Reading {
	out := Reading{Raw: g.of(r.Raw, r.RawRate), Wall: g.of(r.Wall, r.WallRate), RawRate: r.RawRate, WallRate: r.WallRate}
	out.TRES = make([]Flow, len(r.TRES))
	for i, f := range r.TRES {
		out.TRES[i] = Flow{f.Name, g.of(f.Seconds, f.Rate), f.Rate}
	}
	return out
}

// Adjust changes the rates of a reading by those of a job: k is 1 when it starts and -1 when it ends. The reading must
// be the caller's own.
func (r *Reading) Adjust(t TRES, billing int64, factor float64, k int64) {
	per := k * int64(math.Round(factor*Micro))
	r.RawRate += billing * per
	r.WallRate += per
	for _, a := range t {
		i, ok := slices.BinarySearchFunc(r.TRES, a.Name, func(f Flow, n string) int { return cmp.Compare(f.Name, n) })
		if !ok {
			r.TRES = slices.Insert(r.TRES, i, Flow{Name: a.Name})
		}
		r.TRES[i].Rate += a.Count * per
	}
}

// AddUsed adds what another reading has used; its rates do not count. The reading must be the caller's own.
func (r *Reading) AddUsed(o *Reading) {
	r.Raw += o.Raw
	r.Wall += o.Wall
	for _, f := range o.TRES {
		i, ok := slices.BinarySearchFunc(r.TRES, f.Name, func(f Flow, n string) int { return cmp.Compare(f.Name, n) })
		if !ok {
			r.TRES = slices.Insert(r.TRES, i, Flow{Name: f.Name})
		}
		r.TRES[i].Seconds += f.Seconds
	}
}

// With finds the part of a meter that belongs to a QOS, making it if need be. The meter must be the caller's own.
func (m *Meter) With(name core.QOSName, noDecay bool) *QOSReading {
	i, ok := slices.BinarySearchFunc(m.QOS, name, func(q QOSReading, n core.QOSName) int { return cmp.Compare(q.Name, n) })
	if !ok {
		m.QOS = slices.Insert(m.QOS, i, QOSReading{Name: name})
	}
	m.QOS[i].NoDecay = noDecay
	return &m.QOS[i]
}

// Usage is a reading in the words of a tree.
func (r *Reading) Usage(at core.Time) Usage {
	u := Usage{Raw: r.Raw, Wall: r.Wall, At: at}
	for _, f := range r.TRES {
		u.TRES = append(u.TRES, Used{f.Name, f.Seconds})
	}
	return u
}

// metered is a meter with the counters it is read for.
type metered struct {
	*Meter
	at  []int32 // of its account's path
	qos []int32 // of its QOS, in order; -1: nobody asks
}

// SetMeter tells what somebody used.
func (t *Tally) SetMeter(m *Meter) {
	i, ok := slices.BinarySearchFunc(t.meters, m, func(x *metered, m *Meter) int {
		return cmp.Or(cmp.Compare(x.Project, m.Project), cmp.Compare(x.User, m.User))
	})
	if !ok {
		t.meters = slices.Insert(t.meters, i, &metered{})
	}
	x := &metered{Meter: m}
	t.meters[i] = x
	t.fact.at = 0
	for _, n := range t.rules.levels(Who{Project: m.Project, User: m.User}).path {
		if n.parent != nil && minutesIn(&n.Limits) {
			x.at = append(x.at, t.counter(counterKey{project: n.Project, user: n.User}))
		}
	}
	for j := range m.QOS {
		id := int32(-1)
		if q := t.rules.QOS(m.QOS[j].Name); q != nil && minutesIn(&q.Limits) {
			id = t.counter(counterKey{qos: q.Name})
		}
		x.qos = append(x.qos, id)
	}
}

// read adds what a meter says at now to the counters that ask.
func (m *metered) read(t *Tally, f *factAt, now core.Time) {
	if len(m.at) > 0 {
		g := t.rules.since(m.At, now, false)
		for _, c := range m.at {
			t.addUsed(f, c, &m.All, g)
		}
	}
	for j, c := range m.qos {
		if c >= 0 {
			q := &m.QOS[j]
			t.addUsed(f, c, &q.Reading, t.rules.since(m.At, now, q.NoDecay))
		}
	}
}

func (t *Tally) addUsed(f *factAt, c int32, r *Reading, g grown) {
	names := t.rules.names
	base := int(c) * (len(names) + 1)
	for _, x := range r.TRES {
		if i, ok := slices.BinarySearch(names, x.Name); ok {
			f.used[base+i] += g.of(x.Seconds, x.Rate)
		}
	}
	if i, ok := slices.BinarySearch(names, "billing"); ok {
		f.used[base+i] += g.of(r.Raw, r.RawRate)
	}
	f.used[base+len(names)] += g.of(r.Wall, r.WallRate)
}

// minutesIn reports whether limits are about minutes that were used.
func minutesIn(l *Limits) bool { return len(l.GrpTRESMins) > 0 || l.GrpWall != nil }
