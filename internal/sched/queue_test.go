package sched

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
)

// TestQueueIsASortedList holds the chunked queue against a slice that is sorted after every change.
func TestQueueIsASortedList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var q queue
		var list []queueEntry
		id := core.JobID(0)
		for range rapid.IntRange(1, 40).Draw(rt, "rounds") {
			if n := rapid.IntRange(0, 100).Draw(rt, "insert"); n > 0 {
				for range n {
					id++
					j := coretest.Job().ID(id).Priority(uint32(id * 7919 % 5)).Submitted(core.Time(id * 104729 % 11)).Build()
					q.Insert(queueEntryOf(j, nil, nil))
					list = append(list, queueEntryOf(j, nil, nil))
				}
				slices.SortFunc(list, func(a, b queueEntry) int { return a.Compare(&b) })
			}
			for range rapid.IntRange(0, 60).Draw(rt, "remove") {
				if len(list) == 0 {
					break
				}
				at := rapid.IntRange(0, len(list)-1).Draw(rt, "at")
				q.Remove(list[at])
				q.Remove(list[at]) // what is not there is not missed
				list = slices.Delete(list, at, at+1)
			}
			var got []queueEntry
			for c := (queueCursor{List: &q}); c.Current() != nil; c.Next() {
				got = append(got, *c.Current())
			}
			if !slices.Equal(got, list) || q.Len != len(list) {
				rt.Fatalf("the queue has %d entries in order, the list %d", len(got), len(list))
			}
		}
	})
}
