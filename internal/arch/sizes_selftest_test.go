package arch

import (
	"strings"
	"testing"
	"testing/fstest"
)

// TestSizesCount: what counts as a method, as a line of a package and as a long line.
func TestSizesCount(t *testing.T) {
	t.Parallel()
	long := "// " + strings.Repeat("é", maxLineColumns-2)
	fit := "// " + strings.Repeat("é", maxLineColumns-3)
	measured, err := measure(fstest.MapFS{
		"internal/core/sub/a.go": {Data: []byte(`package sub
import "context"
type S struct{}
type G[T any] struct{}
type N int
func (S) A() {}
func (s *S) B() {}
func c(s *S, n int) {}
func d(ctx context.Context, s S) {}
func e(n int, s S) {}
func f(n N) {}
func (n N) G() {}
func (g *G[T]) H() {}
func i[T any](g G[T]) {}
` + long + "\n" + fit + "\n")},
		"internal/core/sub/a_test.go": {Data: []byte("package sub\nfunc (S) T() {}\n" + long + "\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[size]int{
		{"package", "internal/core/sub"}: 16,
		{"lines", "internal/core"}:       2,
		{"type", "internal/core/sub.S"}:  4,
		{"type", "internal/core/sub.N"}:  1,
		{"type", "internal/core/sub.G"}:  2,
	}
	for s, n := range want {
		if measured[s] != n {
			t.Errorf("%s: %d, want %d", s, measured[s], n)
		}
	}
	if len(measured) != len(want) {
		t.Errorf("measured %v, want %v", measured, want)
	}
}

// TestSizesOnlyShrink: growth is refused, listed or not; a lower size is reported and its row lowered or deleted.
func TestSizesOnlyShrink(t *testing.T) {
	t.Parallel()
	const text = "# head\n\ntype a.T 50 one reason\nlines a 7 another reason\n"
	table, err := parseSizes(text)
	if err != nil {
		t.Fatal(err)
	}
	typ, lines := size{"type", "a.T"}, size{"lines", "a"}
	tests := map[string]struct {
		measured         map[size]int
		tooLarge, shrunk string // part of the only complaint; empty for none
		text             string
	}{
		"same":     {map[size]int{typ: 50, lines: 7}, "", "", text},
		"grown":    {map[size]int{typ: 51, lines: 7}, "allows 50 (one reason)", "", text},
		"unlisted": {map[size]int{typ: 50, lines: 7, {"package", "b"}: 5001}, "limit 5000", "", text},
		"lower":    {map[size]int{typ: 49, lines: 7}, "", "lower 50 to 49", strings.Replace(text, "50", "49", 1)},
		"within":   {map[size]int{typ: 40, lines: 7}, "", "its row can go", "# head\n\nlines a 7 another reason\n"},
		"gone":     {map[size]int{typ: 50}, "", "its row can go", "# head\n\ntype a.T 50 one reason\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tooLarge, shrunk := compareSizes(tc.measured, table)
			for _, c := range []struct{ got, want string }{
				{strings.Join(tooLarge, "\n"), tc.tooLarge},
				{strings.Join(shrunk, "\n"), tc.shrunk},
			} {
				if (c.want == "") != (c.got == "") || !strings.Contains(c.got, c.want) || strings.Contains(c.got, "\n") {
					t.Errorf("complaints %q, want %q", c.got, c.want)
				}
			}
			if got := string(lowerSizes(text, tc.measured)); got != tc.text {
				t.Errorf("table %q, want %q", got, tc.text)
			}
		})
	}
	for _, bad := range []string{
		"type a.T 50", "type a.T many reason", "type a.T 40 reason", "film a 1 reason",
		"lines a 1 r\nlines a 1 r",
	} {
		if _, err := parseSizes(bad); err == nil {
			t.Errorf("%q: no error", bad)
		}
	}
}
