package hostlist

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]string{
		"":                    "",
		",":                   "",
		"c01":                 "c01",
		"n[001-003,007]":      "n001 n002 n003 n007",
		"n[1-3,7],m[001-003]": "n1 n2 n3 n7 m001 m002 m003",
		"rack[1-2]_n[1-2]":    "rack1_n1 rack1_n2 rack2_n1 rack2_n2",
		"n[8-11]":             "n8 n9 n10 n11",
		"a[08-11]":            "a08 a09 a10 a11",
		"n[01-3]":             "n01 n02 n03",
		"n[1-03]":             "n1 n2 n3",
		"a, b\tc\n":           "a b c",
		"a,,b":                "a b",
		"[1-3]":               "1 2 3",
		"n[3,1-2,2]":          "n3 n1 n2 n2",
		"n[1-2]-ib":           "n1-ib n2-ib",
		"n[999999999999999998-999999999999999999]": "n999999999999999998 n999999999999999999",
	} {
		got, err := Expand(expr, 0)
		if err != nil {
			t.Errorf("%q: %v", expr, err)
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q = %q, want %q", expr, s, want)
		}
		if n, err := Count(expr, 0); err != nil || n != len(got) {
			t.Errorf("Count(%q) = %d, %v, want %d", expr, n, err, len(got))
		}
	}
}

func TestExpandErrors(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]Error{
		"n[":                      {Pos: 1, Msg: "'[' is never closed"},
		"n[1":                     {Pos: 1, Msg: "'[' is never closed"},
		"n[1-":                    {Pos: 1, Msg: "'[' is never closed"},
		"n]":                      {Pos: 1, Msg: "']' without '['"},
		"a,n[]":                   {Pos: 4, Msg: "expected a number, found ']'"},
		"n[1-]":                   {Pos: 4, Msg: "expected a number, found ']'"},
		"n[a]":                    {Pos: 2, Msg: "expected a number, found 'a'"},
		"n[1, 2]":                 {Pos: 4, Msg: "expected a number, found ' '"},
		"n[3-1]":                  {Pos: 2, Msg: "range 3-1 runs backwards"},
		"n[1-2-3]":                {Pos: 5, Msg: "expected ',' or ']' after a number, found '-'"},
		"n[1-2[3]]":               {Pos: 5, Msg: "expected ',' or ']' after a number, found '['"},
		"n[1-11]":                 {Pos: 1, Msg: "more than 10 names"},
		"a,n[1-10]":               {Pos: 2, Msg: "more than 10 names"},
		"n[1-4]m[1-4]":            {Pos: 0, Msg: "more than 10 names"},
		"n[1-4,6-9,11-14]":        {Pos: 1, Msg: "more than 10 names"},
		"n[0-999999999999999999]": {Pos: 1, Msg: "more than 10 names"},
		"n[1000000000000000000]":  {Pos: 2, Msg: "number of more than 18 digits"},
	} {
		_, err := Expand(expr, 10)
		var got *Error
		if !errors.As(err, &got) {
			t.Errorf("%q: error %v, want %v", expr, err, want)
			continue
		}
		want.Expr = expr
		if diff := cmp.Diff(want, *got); diff != "" {
			t.Errorf("%q: -want +got\n%s", expr, diff)
		}
	}
	if n, err := Count("n[1-10]", 10); n != 10 || err != nil {
		t.Errorf("exactly max: %d, %v", n, err)
	}
}

// The right sides are what `scontrol show hostlist` and `show hostlistsorted` of Slurm 22.05.8 print.
func TestFold(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][2]string{
		"":                            {"", ""},
		"c01":                         {"c01", "c01"},
		"n1,n2,n3,m1,n5":              {"n[1-3],m1,n5", "m1,n[1-3,5]"},
		"a08,a09,a10,a11":             {"a[08-11]", "a[08-11]"},
		"r1n1,r1n2,r2n1,r2n2":         {"r1n[1-2],r2n[1-2]", "r1n[1-2],r2n[1-2]"},
		"n3,n1,n2,n2":                 {"n[3,1-2,2]", "n[1-2,2-3]"},
		"n1,n003":                     {"n[1,003]", "n[1,003]"},
		"n09,n10,n99,n100":            {"n[09-10,99-100]", "n[09-10,99-100]"},
		"n098,n099,n100,n1000":        {"n[098-100,1000]", "n[098-100,1000]"},
		"n99,n0100":                   {"n[99,0100]", "n[99,0100]"},
		"n9,n10,n011":                 {"n[9-10,011]", "n[9-10,011]"},
		"a,a1,a2":                     {"a,a[1-2]", "a,a[1-2]"},
		"a1,a":                        {"a1,a", "a,a1"},
		"a,a":                         {"a,a", "a,a"},
		"n1,n1":                       {"n[1,1]", "n[1,1]"},
		"a1b,a2b":                     {"a1b,a2b", "a1b,a2b"},
		"10,9,8":                      {"[10,9,8]", "[8-10]"},
		"n010,n1,n02":                 {"n[010,1,02]", "n[1,02,010]"},
		"n2,m1,n1,m10,m2":             {"n2,m1,n1,m[10,2]", "m[1-2,10],n[1-2]"},
		"a10b3,a9b3,a9b20":            {"a10b3,a9b[3,20]", "a9b[3,20],a10b3"},
		"a01b1,a1b1,a2b1,a010b1":      {"a01b1,a1b1,a2b1,a010b1", "a01b1,a010b1,a1b1,a2b1"},
		"B1,a1,A2":                    {"B1,a1,A2", "A2,B1,a1"},
		"ab,a1,a,a-1":                 {"ab,a1,a,a-1", "a,a1,a-1,ab"},
		"n1,n2,n,n3":                  {"n[1-2],n,n3", "n,n[1-3]"},
		"n18446744073709551615,n1,n2": {"n18446744073709551615,n[1-2]", "n[1-2],n18446744073709551615"},
	} {
		var names []string
		if list != "" {
			names = strings.Split(list, ",")
		}
		if got := [2]string{Fold(names), FoldSorted(names)}; got != want {
			t.Errorf("%s = %q, want %q", list, got, want)
		}
	}
}

func TestFoldSortedIgnoresOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.StringMatching(`[ab]{0,2}[0-2]{0,3}[a-]?[0-9]{1,3}`)).Draw(t, "names")
		want := FoldSorted(names)
		shuffled := slices.Clone(names)
		r := rand.New(rand.NewPCG(1, uint64(len(names))))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := FoldSorted(shuffled); got != want {
			t.Fatalf("order changed the fold: %s and %s", got, want)
		}
		back, err := Expand(Fold(names), 0)
		if err != nil || !slices.Equal(back, names) {
			t.Fatalf("Expand(Fold(%q)) = %q, %v", names, back, err)
		}
	})
}

// FuzzExpand holds the round trip: what an expression means survives folding.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"n[001-003,007]", "r[1-2]n[1-2]", "a,b c", "n[1", "n[3-1]", "[1]", "n[9-10]x[01-2]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		const limit = 1000
		names, err := Expand(expr, limit)
		n, errCount := Count(expr, limit)
		if (err == nil) != (errCount == nil) || n != len(names) {
			t.Fatalf("Count = %d, %v; Expand = %d names, %v", n, errCount, len(names), err)
		}
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(expr) {
				t.Fatalf("error without a place: %#v", err)
			}
			return
		}
		for _, name := range names {
			if !Valid(name) {
				t.Fatalf("%q expands to the invalid name %q", expr, name)
			}
		}
		folded := Fold(names)
		again, err := Expand(folded, limit)
		if err != nil || !slices.Equal(again, names) {
			t.Fatalf("%q folds to %q, which is %q (%v), not %q", expr, folded, again, err, names)
		}
	})
}

func BenchmarkFold10k(b *testing.B) {
	names, err := Expand("node[00001-10000]", 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if Fold(names) != "node[00001-10000]" {
			b.Fatal("wrong fold")
		}
	}
}
