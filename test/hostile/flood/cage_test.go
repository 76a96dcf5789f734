package flood

import "testing"

// A cgroup that was bound to processors is recognized, however the kernel writes their list.
func TestSameProcessors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"8-15\n", "8,9,10,11,12,13,14,15", true},
		{"1\n", "1", true},
		{"2-3\n", "2,3", true},
		{"\n", "1", false},
		{"0-3\n", "2,3", false},
	} {
		if got := sameProcessors(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
	}
}
