package taskset

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func mustParse(t *testing.T, text string) Set {
	t.Helper()
	s, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParse(t *testing.T) {
	t.Parallel()
	for text, tc := range map[string]struct {
		want              string
		n, min, max, step int
	}{
		"0":             {"0", 1, 0, 0, 1},
		"1-20":          {"1-20", 20, 1, 20, 1},
		"1,3,5":         {"1,3,5", 3, 1, 5, 2},
		"1-7:2":         {"1-7:2", 4, 1, 7, 2},
		"1-8:2":         {"1-7:2", 4, 1, 7, 2},
		"1-5:9":         {"1", 1, 1, 1, 1},
		"2-10:4":        {"2,6,10", 3, 2, 10, 4},
		"0,6,16-32":     {"0,6,16-32", 19, 0, 32, 1},
		"5,4,3":         {"3-5", 3, 3, 5, 1},
		"1-3,2-4":       {"1-4", 4, 1, 4, 1},
		"1,1":           {"1", 1, 1, 1, 1},
		"[1-3]":         {"1-3", 3, 1, 3, 1},
		"1-11:2,13":     {"1-13:2", 7, 1, 13, 2},
		"0-9:2,1-9:2":   {"0-9", 10, 0, 9, 1},
		"4000000":       {"4000000", 1, 4000000, 4000000, 1},
		"1-2":           {"1-2", 2, 1, 2, 1},
		"3,5":           {"3,5", 2, 3, 5, 2},
		"1-40:3,2":      {"1-2,4-40:3", 15, 1, 40, 1},
		"10-19,1-9:3":   {"1,4,7,10-19", 13, 1, 19, 1},
		"1-4000000:999": {"1-3999997:999", 4005, 1, 3999997, 999},
	} {
		s := mustParse(t, text)
		got := []any{s.String(), s.Len(), s.Min(), s.Max(), s.Step()}
		if diff := cmp.Diff([]any{tc.want, tc.n, tc.min, tc.max, tc.step}, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", text, diff)
		}
	}
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Error{
		"":                                    {Pos: 0, Msg: "expected a task index at the end"},
		"[]":                                  {Pos: 1, Msg: "expected a task index at the end"},
		"a":                                   {Pos: 0, Msg: "expected a task index, found 'a'"},
		"5-1":                                 {Pos: 0, Msg: "range 5-1 runs backwards"},
		"1-":                                  {Pos: 2, Msg: "expected a task index at the end"},
		"-1":                                  {Pos: 0, Msg: "expected a task index, found '-'"},
		"1,,2":                                {Pos: 2, Msg: "expected a task index, found ','"},
		"1-5:0":                               {Pos: 4, Msg: "the step must be 1 or more"},
		"1-5:":                                {Pos: 4, Msg: "expected a task step at the end"},
		"1:2":                                 {Pos: 1, Msg: "expected ',' between indices, found ':'"},
		"1-4000001":                           {Pos: 2, Msg: "task index above 4000000"},
		"9999999999":                          {Pos: 0, Msg: "task index above 4000000"},
		"0-4000000:2,1-4000000:3,2-4000000:5": {Pos: 0, Msg: "ranges overlap too much: more than 1048576 indices named"},
	} {
		_, err := Parse(text)
		var got *Error
		if !errors.As(err, &got) {
			t.Errorf("%q: error %v, want one", text, err)
			continue
		}
		want.Text = text
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%q: -want +got\n%s", text, diff)
		}
	}
}

func TestSmall(t *testing.T) { // not parallel: it counts allocations
	s := mustParse(t, "1-100000")
	if len(s.ranges) != 1 {
		t.Fatalf("1-100000 takes %d ranges", len(s.ranges))
	}
	for i := 2; i <= 100000; i += 2 { // every other task is canceled, one by one
		s = s.Remove(i)
		if len(s.ranges) > 3 {
			t.Fatalf("after removing %d: %d ranges", i, len(s.ranges))
		}
	}
	if s.String() != "1-99999:2" {
		t.Errorf("left: %.60s", s.String())
	}
	if allocs := testing.AllocsPerRun(100, func() { s.Remove(1) }); allocs > 1 {
		t.Errorf("Remove allocates %v times", allocs)
	}
}

func TestTextRoundTrip(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1-7:2,9"} {
		in := struct{ Tasks Set }{}
		if err := in.Tasks.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		doc, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var out struct{ Tasks Set }
		if err := json.Unmarshal(doc, &out); err != nil || !out.Tasks.Equal(in.Tasks) {
			t.Errorf("%s became %q: %v", doc, out.Tasks, err)
		}
	}
	if err := new(Set).UnmarshalText([]byte("x")); err == nil {
		t.Error("bad text was accepted")
	}
}

// TestAgainstPlainMap edits sets beside plain maps and compares every way of reading them.
func TestAgainstPlainMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		want := map[int]bool{}
		draw := func(t *rapid.T) (Set, map[int]bool) {
			var rs []Range
			in := map[int]bool{}
			for range rapid.IntRange(0, 4).Draw(t, "ranges") {
				first := rapid.Int32Range(0, 60).Draw(t, "first")
				r := Range{first, first + rapid.Int32Range(0, 40).Draw(t, "span"), rapid.Int32Range(1, 7).Draw(t, "step")}
				rs = append(rs, r)
				for i := r.First; i <= r.Last; i += r.Step {
					in[int(i)] = true
				}
			}
			set, err := New(rs...)
			if err != nil {
				t.Fatal(err)
			}
			return set, in
		}
		t.Repeat(map[string]func(*rapid.T){
			"new": func(t *rapid.T) { s, want = draw(t) },
			"remove": func(t *rapid.T) {
				i := rapid.IntRange(-1, 110).Draw(t, "i")
				before := s.String()
				next := s.Remove(i)
				if s.String() != before {
					t.Fatalf("Remove(%d) changed the set it was asked of: %s, was %s", i, s, before)
				}
				s = next
				delete(want, i)
			},
			"removeFirst": func(t *rapid.T) {
				if i, ok := s.First(); ok {
					s = s.Remove(i)
					delete(want, i)
				}
			},
			"minus": func(t *rapid.T) {
				o, in := draw(t)
				s = s.Minus(o)
				maps.DeleteFunc(want, func(i int, _ bool) bool { return in[i] })
			},
			"intersect": func(t *rapid.T) {
				o, in := draw(t)
				s = s.Intersect(o)
				maps.DeleteFunc(want, func(i int, _ bool) bool { return !in[i] })
			},
			"": func(t *rapid.T) {
				ids := slices.Sorted(maps.Keys(want))
				if got := slices.Collect(s.All()); !slices.Equal(got, ids) || s.Len() != len(ids) {
					t.Fatalf("holds %v (Len %d), want %v", got, s.Len(), ids)
				}
				for i := -1; i < 110; i++ {
					if s.Contains(i) != want[i] {
						t.Fatalf("Contains(%d) = %v in %s", i, s.Contains(i), s)
					}
				}
				if len(ids) == 0 {
					return
				}
				if s.Min() != ids[0] || s.Max() != ids[len(ids)-1] {
					t.Fatalf("%s: Min %d Max %d", s, s.Min(), s.Max())
				}
				step := 1
				if len(ids) > 1 {
					step = ids[1] - ids[0]
					for k := 1; k < len(ids); k++ {
						if ids[k]-ids[k-1] != step {
							step = 1
							break
						}
					}
				}
				if s.Step() != step {
					t.Fatalf("%s: Step %d, want %d", s, s.Step(), step)
				}
				back, err := Parse(s.String())
				if err != nil || !back.Equal(s) || !Of(ids...).Equal(s) {
					t.Fatalf("%s reads back as %s: %v", s, back, err)
				}
			},
		})
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"0-15", "1,3,5", "0,6,16-32", "1-7:2", "5-1", "[1-3]", "1-3,2-4:2", "1,2-7:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) {
				t.Fatalf("error without a place: %#v", err)
			}
			return
		}
		again, err := Parse(s.String())
		if err != nil || !again.Equal(s) {
			t.Fatalf("%q is %q, which reads as %q: %v", text, s, again, err)
		}
	})
}

// TestCutsAsIndices: what is taken away or kept range by range is what it would be index by index.
func TestCutsAsIndices(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 7))
	draw := func() Set {
		var rs []Range
		for range 1 + r.IntN(4) {
			first := int32(r.IntN(60))
			rs = append(rs, Range{first, first + int32(r.IntN(40)), int32(1 + r.IntN(4))})
		}
		s, err := New(rs...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for range 20_000 {
		a, b := draw(), draw()
		minus := collect(func(yield func(int) bool) {
			for i := range a.All() {
				if !b.Contains(i) && !yield(i) {
					return
				}
			}
		})
		both := collect(func(yield func(int) bool) {
			for i := range a.All() {
				if b.Contains(i) && !yield(i) {
					return
				}
			}
		})
		for _, c := range []struct {
			what      string
			got, want Set
		}{{"without", a.Minus(b), minus}, {"with", a.Intersect(b), both}} {
			if !c.got.Equal(c.want) || c.got.Len() != c.want.Len() {
				t.Fatalf("%s %s %s is %s, want %s", a, c.what, b, c.got, c.want)
			}
		}
	}
}
