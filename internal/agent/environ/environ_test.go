package environ

import (
	"bytes"
	"testing"
)

func TestDrop(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                      "",
		"A=1\x00B=2\x00":                        "A=1\x00B=2\x00",
		"A=1":                                   "A=1\x00",
		"BIREME_SERVER=x\x00A=1\x00":            "A=1\x00",
		"A=1\x00BIREME_SERVER=x":                "A=1\x00",
		"A=BIREME_SERVER=x\x00":                 "A=BIREME_SERVER=x\x00",
		"BIREME_SERVER=\x00BIREME_SERVER=y\x00": "",
		"MY_BIREME_SERVER=x\x00BIREME_CA=f\x00": "MY_BIREME_SERVER=x\x00",
	} {
		if got := string(Drop([]byte(in), "BIREME_SERVER", "BIREME_CA")); got != want {
			t.Errorf("Drop(%q) is %q, want %q", in, got, want)
		}
	}
}

// TestDropOfMany: what a job says a hundred thousand times is dropped in one pass; one copy for each took minutes,
// in which the node was silent.
func TestDropOfMany(t *testing.T) {
	t.Parallel()
	env := bytes.Repeat([]byte("BIREME_CA=0123456789\x00A=1\x00"), 400_000)
	want := bytes.Repeat([]byte("A=1\x00"), 400_000)
	if got := Drop(env, "BIREME_SERVER", "BIREME_CA", "BIREME_EXE"); !bytes.Equal(got, want) {
		t.Errorf("%d bytes are left, want %d", len(got), len(want))
	}
}
