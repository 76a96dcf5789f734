package disk

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestLow(t *testing.T) {
	t.Parallel()
	var st unix.Statfs_t
	if err := unix.Statfs("/", &st); err != nil {
		t.Fatal(err)
	}
	if free, ok := Free("/"); !ok || free < 0 || free > int64(st.Blocks)*st.Bsize {
		t.Error(free, ok)
	}
	for _, tc := range []struct {
		dir   string
		least int64
		want  bool
	}{{"/", 0, false}, {"/", 1, false}, {"/", 1 << 60, true}, {"/no/such/folder", 1 << 60, false}} {
		var w Watch
		if got := w.Low(tc.dir, tc.least, 1); got != tc.want || w.IsLow() != tc.want {
			t.Errorf("%s with %d: %v", tc.dir, tc.least, got)
		}
	}
}
