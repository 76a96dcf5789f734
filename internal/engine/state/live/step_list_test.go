package live

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"bireme.dev/bireme/internal/core"
)

// A list of steps is what a plain map of them would be, and lists made from it before stay as they were.
func TestStepList(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var l, old *stepList
		want, then := map[int32]*core.Step{}, []*core.Step(nil)
		next := int32(0)
		for range rapid.IntRange(0, 700).Draw(t, "changes") {
			id := next
			if next > 0 && rapid.IntRange(0, 2).Draw(t, "old") == 0 {
				id = rapid.Int32Range(0, next+5).Draw(t, "id")
			}
			next = max(next, id+1)
			st := &core.Step{ID: id, State: core.Running}
			if rapid.Bool().Draw(t, "ended") {
				st.State = core.Completed
			}
			l = l.with(st)
			want[id] = st
			if old == nil {
				old, then = l, slices.Clone(l.all())
			}
		}
		var live []*core.Step
		for _, id := range slices.Sorted(func(yield func(int32) bool) {
			for id := range want {
				if !yield(id) {
					return
				}
			}
		}) {
			if page, at, ok := l.find(id); !ok || l.pages[page][at] != want[id] {
				t.Fatalf("step %d is not found", id)
			}
			if !want[id].State.Final() {
				live = append(live, want[id])
			}
		}
		if len(l.all()) != len(want) {
			t.Fatalf("%d steps, want %d", len(l.all()), len(want))
		}
		if l != nil && !slices.Equal(l.live, live) {
			t.Fatalf("live %v, want %v", l.live, live)
		}
		if old != nil && !slices.Equal(old.all(), then) {
			t.Fatal("an earlier list has changed")
		}
		if _, _, ok := l.find(next + 10); ok {
			t.Fatal("a step is found that is not there")
		}
	})
}
