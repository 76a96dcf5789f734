package taskset

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
)

// MaxIndex is the greatest task index there is (Slurm's hard limit for MaxArraySize, less one).
const MaxIndex = 4_000_000

// maxWork bounds the indices visited when ranges with steps interleave, so that a list of them cannot
// keep the caller busy; plain ranges that overlap are joined without a visit.
const maxWork = 1 << 20

// Range is the indices First, First+Step … Last.
type Range struct {
	First, Last, Step int32
}

func (r Range) len() int { return int(r.Last-r.First)/int(r.Step) + 1 }

func (r Range) contains(i int32) bool {
	return r.First <= i && i <= r.Last && (i-r.First)%r.Step == 0
}

// Set is an immutable set of task indices. The zero Set is empty.
type Set struct {
	ranges []Range
	n      int32
}

// New makes the set of all indices in ranges, which may overlap in any way. A Step of zero means 1;
// a Last that the steps do not hit is lowered to the one they do.
func New(ranges ...Range) (Set, error) {
	rs := make([]Range, 0, len(ranges))
	for _, r := range ranges {
		if r.Step == 0 {
			r.Step = 1
		}
		switch {
		case r.First < 0 || r.Last > MaxIndex:
			return Set{}, fmt.Errorf("task index out of range: want 0 to %d", MaxIndex)
		case r.Last < r.First:
			return Set{}, fmt.Errorf("range %d-%d runs backwards", r.First, r.Last)
		case r.Step < 1:
			return Set{}, fmt.Errorf("step %d is not positive", r.Step)
		}
		r.Last -= (r.Last - r.First) % r.Step
		if r.First == r.Last {
			r.Step = 1
		}
		rs = append(rs, r)
	}
	slices.SortFunc(rs, func(a, b Range) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Step, b.Step))
	})
	rs = joinPlain(slices.Compact(rs))
	interleaved, work := false, 0
	for k, r := range rs {
		interleaved = interleaved || k > 0 && r.First <= rs[k-1].Last
		work += r.len()
	}
	if interleaved {
		if work > maxWork {
			return Set{}, fmt.Errorf("ranges overlap too much: more than %d indices named", maxWork)
		}
		return fromOverlapping(rs), nil
	}
	s := Set{n: int32(work)}
	for _, r := range rs {
		s.ranges = appendJoined(s.ranges, r)
	}
	return s, nil
}

// Of makes the set of the given indices; it panics on one that is out of range.
func Of(indices ...int) Set {
	rs := make([]Range, len(indices))
	for k, i := range indices {
		if i < 0 || i > MaxIndex {
			panic(fmt.Sprintf("taskset: index %d out of range", i))
		}
		rs[k] = Range{First: int32(i), Last: int32(i), Step: 1}
	}
	s, err := New(rs...)
	if err != nil {
		panic(err)
	}
	return collect(s.All())
}

// joinPlain joins sorted ranges that overlap, if none of them has a step.
func joinPlain(rs []Range) []Range {
	if slices.ContainsFunc(rs, func(r Range) bool { return r.Step != 1 }) {
		return rs
	}
	out := rs[:0]
	for _, r := range rs {
		if n := len(out); n > 0 && r.First <= out[n-1].Last {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Pieces is how many ranges the set is kept as.
func (s Set) Pieces() int { return len(s.ranges) }

func fromOverlapping(rs []Range) Set {
	last, work := int32(0), 0
	for _, r := range rs {
		last = max(last, r.Last)
		work += r.len()
	}
	if work < int(last)/16 { // few indices far apart: a table of all up to the last would be mostly empty
		all := make([]int, 0, work)
		for _, r := range rs {
			for i := r.First; i <= r.Last; i += r.Step {
				all = append(all, int(i))
			}
		}
		slices.Sort(all)
		return collect(slices.Values(slices.Compact(all)))
	}
	seen := make([]bool, last+1)
	for _, r := range rs {
		for i := r.First; i <= r.Last; i += r.Step {
			seen[i] = true
		}
	}
	return collect(func(yield func(int) bool) {
		for i, in := range seen {
			if in && !yield(i) {
				return
			}
		}
	})
}

// collect makes a set of ascending indices with as few ranges as one look ahead finds.
func collect(indices iter.Seq[int]) Set {
	var s Set
	var cur Range // s.n == 0: none yet
	for index := range indices {
		i := int32(index)
		s.n++
		switch {
		case s.n == 1:
			cur = Range{i, i, 1}
		case cur.First == cur.Last: // one index: any second one makes a step
			cur.Last, cur.Step = i, i-cur.First
		case i == cur.Last+cur.Step:
			cur.Last = i
		case cur.Step > 1 && cur.Last == cur.First+cur.Step:
			// Only two, and far apart: the second may begin a better run with i.
			s.ranges = append(s.ranges, Range{cur.First, cur.First, 1})
			cur = Range{cur.Last, i, i - cur.Last}
		default:
			s.ranges = append(s.ranges, cur)
			cur = Range{i, i, 1}
		}
	}
	if s.n > 0 {
		s.ranges = append(s.ranges, cur)
	}
	return s
}

// appendJoined appends r, or lengthens the last range when r goes on in its steps.
func appendJoined(rs []Range, r Range) []Range {
	if len(rs) == 0 {
		return append(rs, r)
	}
	p := &rs[len(rs)-1]
	gap := r.First - p.Last
	single := r.First == r.Last
	switch {
	case gap == 1 && (p.Step == 1 || p.First == p.Last) && (r.Step == 1 || single):
		p.Last, p.Step = r.Last, 1
	case p.First != p.Last && p.Step == gap && (single || r.Step == gap):
		p.Last = r.Last
	default:
		return append(rs, r)
	}
	return rs
}

// Len returns the number of indices.
func (s Set) Len() int { return int(s.n) }

// Empty reports whether there are none.
func (s Set) Empty() bool { return s.n == 0 }

// First returns the lowest index, and whether there is one.
func (s Set) First() (int, bool) {
	if s.n == 0 {
		return 0, false
	}
	return int(s.ranges[0].First), true
}

// Min returns the lowest index, 0 for the empty set.
func (s Set) Min() int { i, _ := s.First(); return i }

// Max returns the highest index, 0 for the empty set.
func (s Set) Max() int {
	if s.n == 0 {
		return 0
	}
	return int(s.ranges[len(s.ranges)-1].Last)
}

// Step returns the distance between neighbors when it is the same all through, else 1.
func (s Set) Step() int {
	if s.n < 2 {
		return 1
	}
	step, prev := 0, -1
	for _, r := range s.ranges {
		if prev >= 0 {
			gap := int(r.First) - prev
			if step != 0 && gap != step {
				return 1
			}
			step = gap
		}
		if r.First != r.Last {
			if step != 0 && int(r.Step) != step {
				return 1
			}
			step = int(r.Step)
		}
		prev = int(r.Last)
	}
	return step
}

// Ranges returns the ranges, ascending. The slice must not be changed.
func (s Set) Ranges() []Range { return s.ranges }

// find returns the range that would hold i.
func (s Set) find(i int) (k int, ok bool) {
	if i < 0 || i > MaxIndex {
		return 0, false
	}
	k, _ = slices.BinarySearchFunc(s.ranges, int32(i), func(r Range, i int32) int { return cmp.Compare(r.Last, i) })
	return k, k < len(s.ranges) && s.ranges[k].contains(int32(i))
}

// Contains reports whether i is in the set.
func (s Set) Contains(i int) bool { _, ok := s.find(i); return ok }

// Remove returns the set without i.
func (s Set) Remove(i int) Set {
	k, ok := s.find(i)
	if !ok {
		return s
	}
	r, at := s.ranges[k], int32(i)
	if r.First == r.Last && k == 0 {
		return Set{ranges: s.ranges[1:], n: s.n - 1} // shared: nobody changes it
	}
	rs := make([]Range, 0, len(s.ranges)+1)
	rs = append(rs, s.ranges[:k]...)
	if at > r.First {
		rs = appendLeft(rs, trim(r.First, at-r.Step, r.Step))
	}
	if at < r.Last {
		rs = append(rs, trim(at+r.Step, r.Last, r.Step))
	}
	rs = append(rs, s.ranges[k+1:]...)
	return Set{ranges: rs, n: s.n - 1}
}

// appendLeft is appendJoined that also pairs two single indices: removing every other index in
// turn then lengthens one range instead of leaving thousands behind.
func appendLeft(rs []Range, r Range) []Range {
	if k := len(rs) - 1; k >= 0 && r.First == r.Last && rs[k].First == rs[k].Last {
		rs[k].Last, rs[k].Step = r.Last, r.First-rs[k].First
		return rs
	}
	return appendJoined(rs, r)
}

func trim(first, last, step int32) Range {
	if first == last {
		step = 1
	}
	return Range{first, last, step}
}

// Minus returns the indices of s that are not in o. It costs ranges, not indices, unless both have steps.
func (s Set) Minus(o Set) Set {
	return s.cut(o, func(rs []Range, r Range, over []Range) []Range {
		for _, q := range over {
			from, to := max(r.First, q.First), min(r.Last, q.Last)
			if from > r.First {
				rs = appendJoined(rs, r.upTo(from-1))
			}
			if q.Step > 1 && r.Step != q.Step || q.Step > 1 && (r.First-q.First)%q.Step != 0 {
				for i := r.next(from); i <= to; i += r.Step {
					if !q.contains(i) {
						rs = appendLeft(rs, Range{i, i, 1})
					}
				}
			}
			if to >= r.Last {
				return rs
			}
			if r = r.from(to + 1); r.First > r.Last {
				return rs
			}
		}
		return appendJoined(rs, r)
	})
}

// Intersect returns the indices that are in both.
func (s Set) Intersect(o Set) Set {
	return s.cut(o, func(rs []Range, r Range, over []Range) []Range {
		for _, q := range over {
			a, b := r, q
			if a.Step < b.Step {
				a, b = b, a
			}
			from, to := max(r.First, q.First), min(r.Last, q.Last)
			if a = a.from(from); a.First > to {
				continue
			}
			a = a.upTo(to)
			if b.Step == 1 || a.Step == b.Step && (a.First-b.First)%b.Step == 0 {
				rs = appendJoined(rs, a)
				continue
			}
			for i := a.First; i <= a.Last; i += a.Step {
				if b.contains(i) {
					rs = appendLeft(rs, Range{i, i, 1})
				}
			}
		}
		return rs
	})
}

// cut makes a set of what is left of each range by those of another set that lie over it.
func (s Set) cut(o Set, each func(rs []Range, r Range, over []Range) []Range) Set {
	var out Set
	for _, r := range s.ranges {
		k, _ := slices.BinarySearchFunc(o.ranges, r.First, func(q Range, i int32) int { return cmp.Compare(q.Last, i) })
		to := k
		for to < len(o.ranges) && o.ranges[to].First <= r.Last {
			to++
		}
		out.ranges = each(out.ranges, r, o.ranges[k:to])
	}
	for _, r := range out.ranges {
		out.n += int32(r.len())
	}
	return out
}

// next is the first index of a range from i on; it may lie beyond its end.
func (r Range) next(i int32) int32 {
	if i <= r.First {
		return r.First
	}
	return r.First + (i-r.First+r.Step-1)/r.Step*r.Step
}

// from is the part of a range from i on; if there is none, its end comes before its begin.
func (r Range) from(i int32) Range {
	first := r.next(i)
	return trim(first, r.Last, r.Step)
}

// upTo is the part of a range up to i, which is not before its begin.
func (r Range) upTo(i int32) Range {
	last := min(r.Last, i)
	return trim(r.First, last-(last-r.First)%r.Step, r.Step)
}

// Equal reports whether both hold the same indices, however they are kept.
func (s Set) Equal(o Set) bool {
	if s.n != o.n {
		return false
	}
	next, stop := iter.Pull(o.All())
	defer stop()
	for i := range s.All() {
		if j, ok := next(); !ok || i != j {
			return false
		}
	}
	return true
}

// All yields the indices in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, r := range s.ranges {
			for i := r.First; i <= r.Last; i += r.Step {
				if !yield(int(i)) {
					return
				}
			}
		}
	}
}

// String writes the set so that Parse reads it back: 1-20, 1,3,5 and 1-7:2. How squeue shows a
// set is another matter; see grammar.FormatArray.
func (s Set) String() string {
	var b []byte
	for k, r := range s.ranges {
		if k > 0 {
			b = append(b, ',')
		}
		b = r.append(b)
	}
	return string(b)
}

func (r Range) append(b []byte) []byte {
	n := r.len()
	if n < 3 || n == 3 && r.Step > 1 {
		if n == 2 && r.Step == 1 {
			b = strconv.AppendInt(b, int64(r.First), 10)
			b = append(b, '-')
			return strconv.AppendInt(b, int64(r.Last), 10)
		}
		for i := r.First; i <= r.Last; i += r.Step {
			if i > r.First {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(i), 10)
		}
		return b
	}
	b = strconv.AppendInt(b, int64(r.First), 10)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(r.Last), 10)
	if r.Step > 1 {
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(r.Step), 10)
	}
	return b
}

// MarshalText is String.
func (s Set) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is Parse; the empty text is the empty set.
func (s *Set) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = Set{}
		return nil
	}
	got, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = got
	return nil
}
