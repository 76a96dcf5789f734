// Package depend has dependencies between jobs: who waits for whom (Index), how the last jobs ended, cycles, and the
// evaluation of conditions, which changes the jobs that wait (Dependencies).
package depend

import (
	"cmp"
	"maps"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// Index is derived from the dependencies of pending jobs. It costs nothing while no job has any.
type Index struct {
	Dependents map[core.JobID]map[core.JobID]struct{} // jobs that wait for a job or an array
	Singletons map[Name]map[core.JobID]struct{}       // jobs that wait to be the only one of a name
	// LoadSeq is the sequence number of the loaded state. No ending before it is known.
	LoadSeq int64

	jobsByName map[Name]map[core.JobID]struct{} // live jobs by name; nil until a job waits so
	// recent is how the last jobs ended: a submission may name a job that ended while the submission was on its way.
	recent []Ending
	oldest int // in recent, once it is full
}

// maxRecent is how many endings are kept.
const maxRecent = 8192

// Name is what a singleton dependency compares: the name of a user's job.
type Name struct {
	user core.UserName
	name string
}

func nameOf(j *core.Job) Name { return Name{j.Spec.User, j.Spec.Name} }

func addToSet[K comparable](m *map[K]map[core.JobID]struct{}, k K, id core.JobID) {
	if *m == nil {
		*m = map[K]map[core.JobID]struct{}{}
	}
	if (*m)[k] == nil {
		(*m)[k] = map[core.JobID]struct{}{}
	}
	(*m)[k][id] = struct{}{}
}

func removeFromSet[K comparable](m map[K]map[core.JobID]struct{}, k K, id core.JobID) {
	if delete(m[k], id); len(m[k]) == 0 {
		delete(m, k)
	}
}

// JobChanged updates the index; old is nil for a new job.
func (x *Index) JobChanged(old, j *core.Job) {
	if old != nil && old.Needs != nil {
		for i := range old.Needs.Left {
			switch n := &old.Needs.Left[i]; {
			case n.Failed:
			case n.Kind == core.NeedSingleton:
				removeFromSet(x.Singletons, nameOf(old), old.ID)
			default:
				removeFromSet(x.Dependents, n.Job, old.ID)
			}
		}
	}
	if j.Needs != nil && j.Live() {
		for i := range j.Needs.Left {
			switch n := &j.Needs.Left[i]; {
			case n.Failed:
			case n.Kind == core.NeedSingleton:
				addToSet(&x.Singletons, nameOf(j), j.ID)
			default:
				addToSet(&x.Dependents, n.Job, j.ID)
			}
		}
	}
	if x.jobsByName != nil {
		if old != nil {
			removeFromSet(x.jobsByName, nameOf(old), old.ID)
		}
		if j.Live() {
			addToSet(&x.jobsByName, nameOf(j), j.ID)
		}
	}
}

// IndexesNames reports whether live jobs are indexed by name.
func (x *Index) IndexesNames() bool { return x.jobsByName != nil }

// IndexNames begins to index live jobs by name. The caller adds all of them.
func (x *Index) IndexNames() { x.jobsByName = map[Name]map[core.JobID]struct{}{} }

// AddName adds a live job to the index by name.
func (x *Index) AddName(j *core.Job) { addToSet(&x.jobsByName, nameOf(j), j.ID) }

// SameName is the live jobs with the name and user of a job, itself included.
func (x *Index) SameName(j *core.Job) map[core.JobID]struct{} { return x.jobsByName[nameOf(j)] }

// NoteEnding keeps how a job ended.
func (x *Index) NoteEnding(j *core.Job) {
	if len(x.recent) < maxRecent {
		x.recent = append(x.recent, EndingOf(j))
	} else {
		x.recent[x.oldest] = EndingOf(j)
		x.oldest = (x.oldest + 1) % maxRecent
	}
}

// WaitingFor lists the jobs that wait for a job or for its array, by id.
func (x *Index) WaitingFor(j *core.Job) []core.JobID {
	ids := slices.Collect(maps.Keys(x.Dependents[j.ID]))
	if j.Array != nil && j.Array.Base != j.ID {
		ids = slices.AppendSeq(ids, maps.Keys(x.Dependents[j.Array.Base]))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// WaitingForName lists the jobs that wait to be the only one of the name that a job had, if it has left the name.
func (x *Index) WaitingForName(old, j *core.Job) []core.JobID {
	if len(x.Singletons) == 0 || old == nil || j.Live() && nameOf(old) == nameOf(j) {
		return nil
	}
	return slices.Sorted(maps.Keys(x.Singletons[nameOf(old)]))
}

// HasEnding reports whether one of the last endings is of what a condition names.
func (x *Index) HasEnding(n *core.Need) bool {
	return slices.ContainsFunc(x.recent, func(e Ending) bool { return e.Matches(n) })
}

// EndingsOf lists the endings that conditions name, of the last ones and of these ended jobs, by job.
func (x *Index) EndingsOf(needs *core.Needs, ended []*core.Job) []Ending {
	var known []Ending
	add := func(e Ending) {
		if slices.ContainsFunc(needs.Left, func(n core.Need) bool { return e.Matches(&n) }) {
			known = append(known, e)
		}
	}
	for _, e := range x.recent {
		add(e)
	}
	for _, e := range ended {
		add(EndingOf(e))
	}
	slices.SortStableFunc(known, func(a, b Ending) int { return cmp.Compare(a.id, b.id) })
	return slices.CompactFunc(known, func(a, b Ending) bool { return a.id == b.id })
}
