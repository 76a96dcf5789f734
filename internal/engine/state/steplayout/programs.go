package steplayout

import (
	"cmp"
	"slices"

	"bireme.dev/bireme/internal/core"
)

// CheckPrograms checks that every task of a step whose tasks run several programs has one. It returns the rank that the
// next part begins with; first is this one's.
func CheckPrograms(ask *core.StepRequest, st *core.Step, first int32) (next int32, err error) {
	next = first
	for _, n := range st.Tasks {
		next += n
	}
	if ask == nil || len(ask.Programs) == 0 || next == first {
		return next, nil
	}
	spans := slices.Clone(ask.Programs)
	slices.SortFunc(spans, func(a, b core.RankSpan) int { return cmp.Compare(a.First, b.First) })
	rank := first // the first without a program
	for _, p := range spans {
		if p.First <= rank && rank <= p.Last {
			if p.Last >= next-1 {
				return next, nil
			}
			rank = p.Last + 1
		}
	}
	return next, core.Errorf(core.Invalid, "task %d has no program", rank).Because("no_program")
}
