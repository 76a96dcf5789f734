package procstat

import (
	"os"
	"path/filepath"
	"testing"
)

// A name may hold what ends a name.
func TestRead(t *testing.T) {
	t.Parallel()
	s, ok := Read("/proc", os.Getpid())
	if !ok || s.Ended() || s.Number(Parent) != int64(os.Getppid()) || s.Number(Began) <= 0 || !s.Has(EnvEnd) ||
		s.Has(999) {
		t.Errorf("%v: %q", ok, s.fields)
	}
	proc := t.TempDir()
	for text, want := range map[string]struct {
		ok, ended bool
		parent    int64
	}{
		"7 (a) Z 1 (b) S 5 7": {true, false, 5}, "7 (x) Z 1": {true, true, 1}, "7 (x)": {}, "": {},
		"7 (x) S": {true, false, 0},
	} {
		if err := os.MkdirAll(filepath.Join(proc, "7"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(proc, "7", "stat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, ok := Read(proc, 7)
		if ok != want.ok || ok && (s.Ended() != want.ended || s.Number(Parent) != want.parent) {
			t.Errorf("%q: %v %q", text, ok, s.fields)
		}
	}
	if _, ok := Read(proc, 8); ok {
		t.Error("there is no such process")
	}
}
