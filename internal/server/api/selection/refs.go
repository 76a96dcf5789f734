package selection

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/api/view"
)

// refIndex finds the references that mean a job without looking at all of them, so that thousands of ids cost one pass
// over the live jobs.
type refIndex struct {
	refs  []JobRef
	whole map[core.JobID][]int // jobs, arrays, het jobs and ranges of tasks, by id
	tasks map[taskKey][]int    // single tasks
	array map[core.JobID][]int // single tasks too, by their array
}

type taskKey struct {
	array core.JobID
	task  int
}

func IndexRefs(refs []JobRef) *refIndex {
	x := &refIndex{refs: refs, whole: map[core.JobID][]int{}, tasks: map[taskKey][]int{}, array: map[core.JobID][]int{}}
	for i, f := range refs {
		if f.Tasks.Len() == 1 {
			k := taskKey{f.Id, f.Tasks.Min()}
			x.tasks[k] = append(x.tasks[k], i)
			x.array[f.Id] = append(x.array[f.Id], i)
		} else {
			x.whole[f.Id] = append(x.whole[f.Id], i)
		}
	}
	return x
}

// Each calls found for every reference that means j, until it says that it has heard enough.
func (x *refIndex) Each(j *core.Job, found func(ref int) (more bool)) {
	look := func(list []int) bool {
		for _, i := range list {
			if x.refs[i].is(j) && !found(i) {
				return false
			}
		}
		return true
	}
	if !look(x.whole[j.ID]) {
		return
	}
	if h := j.Spec.More().Het; h != nil && h.Lead != j.ID && !look(x.whole[h.Lead]) {
		return
	}
	if j.Array == nil {
		return
	}
	if base := j.Array.Base; base != j.ID && !look(x.whole[base]) {
		return
	}
	if j.IsArray() {
		look(x.array[j.Array.Base])
	} else {
		look(x.tasks[taskKey{j.Array.Base, int(j.Array.Task)}])
	}
}

// any reports whether some reference means j.
func (x *refIndex) any(j *core.Job) bool {
	hit := false
	x.Each(j, func(int) bool { hit = true; return false })
	return hit
}

// EachLive calls f for every live job that a reference means: those named by a plain id are looked up, and one pass
// over all jobs finds the others.
func EachLive(v *view.Viewer, refs []JobRef, f func(ref int, j *core.Job)) {
	var rest []JobRef
	var at []int
	for i, r := range refs {
		if MayBeArray(v.Snap, r) {
			rest, at = append(rest, r), append(at, i)
		} else if j, ok := v.Job(r.Id); ok {
			f(i, j)
		}
	}
	if len(rest) == 0 {
		return
	}
	x := IndexRefs(rest)
	for j := range v.Jobs() {
		x.Each(j, func(i int) bool { f(at[i], j); return true })
	}
}

// MayBeArray reports whether more than the job under the id itself may be meant: the array's record may be gone while
// tasks of it live on.
func MayBeArray(snap *state.Snapshot, f JobRef) bool {
	j, ok := snap.Job(f.Id)
	return !f.Tasks.Empty() || !ok || j.Array != nil || j.Spec.More().Het != nil && !f.Part
}
