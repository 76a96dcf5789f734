// Package usage keeps what users have used in their projects, as meters: a value, its time, and what the running jobs
// of one user in one project add per second. A meter is touched only when such a job starts or ends, and a restart
// restores it from what was written then. What a job costs is the caller's: it depends on QOS and partitions.
package usage

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/trie"
	"bireme.dev/bireme/internal/policy"
)

// Key is who pays: a user in a project.
type Key struct {
	Project core.ProjectName
	User    core.UserName
}

// KeyOf is who pays for a job.
func KeyOf(j *core.Job) Key { return Key{j.Spec.Project, j.Spec.User} }

// Table is the meters at one time. That of a snapshot never changes.
type Table struct {
	meters trie.Map[*policy.Meter] // by the ids of Meters
	Decay  *policy.Setting         // how usage decays
}

// Snapshot returns a copy that later changes leave alone.
func (t *Table) Snapshot() Table { return Table{meters: t.meters.Snapshot(), Decay: t.Decay} }

// List lists the meters by project and user.
func (t *Table) List() []*policy.Meter {
	out := make([]*policy.Meter, 0, t.meters.Len())
	for _, m := range t.meters.All() {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b *policy.Meter) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}

// Meters is the one writer of a Table.
type Meters struct {
	t      *Table
	ids    map[Key]int64
	lastID int64
	dirty  map[Key]bool // changed since the last TakeSpent
}

// NewMeters makes the writer of a table that has no meters yet.
func NewMeters(t *Table) *Meters { return &Meters{t: t, ids: map[Key]int64{}, dirty: map[Key]bool{}} }

// Load adds a stored meter. noDecay reports whether usage with a QOS does not decay.
func (ms *Meters) Load(x *core.Spent, noDecay func(core.QOSName) bool) {
	m := &policy.Meter{Project: x.Project, User: x.User, At: x.At, All: reading(x.Raw, x.Wall, x.TRES)}
	for i := range x.QOS {
		q := &x.QOS[i]
		m.With(q.Name, noDecay(q.Name)).Reading = reading(q.Raw, q.Wall, q.TRES)
	}
	ms.Put(m)
}

// Reading is what was spent as a meter holds it, without what was used with each QOS.
func Reading(x *core.Spent) policy.Reading { return reading(x.Raw, x.Wall, x.TRES) }

func reading(raw, wall float64, tres []core.UnitSeconds) policy.Reading {
	r := policy.Reading{Raw: raw, Wall: wall}
	for _, t := range tres {
		r.TRES = append(r.TRES, policy.Flow{Name: t.Name, Seconds: t.Seconds})
	}
	return r
}

// Of finds a meter, nil if there is none.
func (ms *Meters) Of(k Key) *policy.Meter {
	m, _ := ms.t.meters.Get(ms.ids[k])
	return m
}

// Put stores a meter. TakeSpent does not return it for this alone, see MarkDirty.
func (ms *Meters) Put(m *policy.Meter) {
	k := Key{m.Project, m.User}
	id, ok := ms.ids[k]
	if !ok {
		ms.lastID++
		id = ms.lastID
		ms.ids[k] = id
	}
	ms.t.meters.Set(id, m)
}

// MarkDirty has the next TakeSpent return a meter.
func (ms *Meters) MarkDirty(m *policy.Meter) { ms.dirty[Key{m.Project, m.User}] = true }

// Read returns a copy of a meter as of now, for the caller to change.
func (ms *Meters) Read(k Key, now core.Time) *policy.Meter {
	if m := ms.Of(k); m != nil {
		return ms.t.Decay.Read(m, now)
	}
	return &policy.Meter{Project: k.Project, User: k.User, At: now}
}

// ReadAll brings all meters to now, before the decay changes.
func (ms *Meters) ReadAll(now core.Time) {
	for k := range ms.ids {
		ms.Put(ms.Read(k, now))
	}
}

// ClearRates brings all meters to now and sets their rates to 0, for the caller to add running jobs again.
func (ms *Meters) ClearRates(now core.Time, noDecay func(core.QOSName) bool) {
	for k := range ms.ids {
		m := ms.Read(k, now)
		clearRates(&m.All)
		for i := range m.QOS {
			clearRates(&m.QOS[i].Reading)
			m.QOS[i].NoDecay = noDecay(m.QOS[i].Name)
		}
		ms.Put(m)
		ms.dirty[k] = true
	}
}

func clearRates(r *policy.Reading) {
	r.RawRate, r.WallRate = 0, 0
	for i := range r.TRES {
		r.TRES[i].Rate = 0
	}
}

// TakeSpent returns the meters that changed since the last call, by project and user.
func (ms *Meters) TakeSpent() []*core.Spent {
	var out []*core.Spent
	for k := range ms.dirty {
		m := ms.Of(k)
		spent := &core.Spent{
			Project: k.Project, User: k.User, At: m.At, Raw: m.All.Raw, Wall: m.All.Wall,
			TRES: unitSeconds(&m.All),
		}
		for i := range m.QOS {
			q := &m.QOS[i]
			spent.QOS = append(spent.QOS, core.SpentQOS{Name: q.Name, Raw: q.Raw, Wall: q.Wall, TRES: unitSeconds(&q.Reading)})
		}
		out = append(out, spent)
	}
	clear(ms.dirty)
	slices.SortFunc(out, func(a, b *core.Spent) int {
		return cmp.Or(cmp.Compare(a.Project, b.Project), cmp.Compare(a.User, b.User))
	})
	return out
}

func unitSeconds(r *policy.Reading) []core.UnitSeconds {
	out := make([]core.UnitSeconds, 0, len(r.TRES))
	for _, f := range r.TRES {
		out = append(out, core.UnitSeconds{Name: f.Name, Seconds: f.Seconds})
	}
	return out
}

// DeleteProject drops the meters of a project.
func (ms *Meters) DeleteProject(name core.ProjectName) {
	for k, id := range ms.ids {
		if k.Project == name {
			ms.t.meters.Delete(id)
			delete(ms.ids, k)
			delete(ms.dirty, k)
		}
	}
}
