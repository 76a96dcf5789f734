package live

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// stepPage is how many steps lie together: to change one copies a page, not all of the job's.
const stepPage = 128

// stepList is the numbered steps of a job, by number. It is never changed, but replaced: snapshots share pages.
type stepList struct {
	pages [][]*core.Step // each but the last is full
	live  []*core.Step   // those that have not ended, by number
}

// all lists the steps in one piece.
func (l *stepList) all() []*core.Step {
	switch {
	case l == nil || len(l.pages) == 0:
		return nil
	case len(l.pages) == 1:
		return l.pages[0]
	}
	out := make([]*core.Step, 0, len(l.pages)*stepPage)
	for _, p := range l.pages {
		out = append(out, p...)
	}
	return out
}

func byStep(s *core.Step, id int32) int { return cmp.Compare(s.ID, id) }

// find gives the page and the place of a step.
func (l *stepList) find(id int32) (page, at int, ok bool) {
	if l == nil || len(l.pages) == 0 {
		return 0, 0, false
	}
	page, found := slices.BinarySearchFunc(l.pages, id,
		func(p []*core.Step, id int32) int { return cmp.Compare(p[0].ID, id) })
	if !found && page > 0 {
		page--
	}
	at, ok = slices.BinarySearchFunc(l.pages[page], id, byStep)
	return page, at, ok
}

// with gives a list in which a step is new or as it is now.
func (l *stepList) with(st *core.Step) *stepList {
	if l == nil {
		l = &stepList{}
	}
	next := &stepList{pages: slices.Clone(l.pages), live: l.live}
	page, at, known := l.find(st.ID)
	last := len(l.pages) - 1
	switch {
	case known:
		next.pages[page] = slices.Clone(l.pages[page])
		next.pages[page][at] = st
	case last < 0 || len(l.pages[last]) == stepPage && l.pages[last][stepPage-1].ID < st.ID:
		next.pages = append(next.pages, []*core.Step{st})
	case l.pages[last][len(l.pages[last])-1].ID < st.ID:
		next.pages[last] = append(slices.Clip(l.pages[last]), st)
	default: // one that comes late, as from a store
		rest := l.all()
		to, _ := slices.BinarySearchFunc(rest, st.ID, byStep)
		next.pages = slices.Collect(slices.Chunk(slices.Insert(slices.Clone(rest), to, st), stepPage))
	}
	at, known = slices.BinarySearchFunc(l.live, st.ID, byStep)
	switch ended := st.State.Final(); {
	case known && ended:
		next.live = slices.Delete(slices.Clone(l.live), at, at+1)
	case known:
		next.live = slices.Clone(l.live)
		next.live[at] = st
	case !ended:
		next.live = slices.Insert(slices.Clone(l.live), at, st)
	}
	return next
}

// Steps lists a live job's numbered steps.
func (v *Snapshot) Steps(id core.JobID) []*core.Step {
	l, _ := v.steps.Get(int64(id))
	return l.all()
}

// LiveSteps lists those that have not ended.
func (v *Snapshot) LiveSteps(id core.JobID) []*core.Step {
	l, _ := v.steps.Get(int64(id))
	if l == nil {
		return nil
	}
	return l.live
}

// Step finds one.
func (v *Snapshot) Step(id core.JobID, step int32) (*core.Step, bool) {
	l, _ := v.steps.Get(int64(id))
	page, at, ok := l.find(step)
	if !ok {
		return nil, false
	}
	return l.pages[page][at], true
}

func (v *Snapshot) addStep(st *core.Step) {
	l, _ := v.steps.Get(int64(st.Job))
	v.steps.Set(int64(st.Job), l.with(st))
}
