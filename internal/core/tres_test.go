package core

import "testing"

func TestTRESIsReadAndWritten(t *testing.T) {
	for in, want := range map[string]string{
		"cpu=4,mem=2G":             "cpu=4,mem=2048",
		"Mem=1.5G, CPU=1":          "cpu=1,mem=1536",
		"gres/gpu:a100=2,node=1":   "gres/gpu:a100=2,node=1",
		"license/matlab=3,mem=512": "license/matlab=3,mem=512",
		"":                         "",
	} {
		got, err := ParseTRES(in)
		if err != nil || got.String() != want {
			t.Errorf("ParseTRES(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, bad := range []string{
		"cpu", "gpu=1", "cpu=x", "cpu=1.5", "cpu=-1", "gres=1", "cpu/x=1", "cpu=1,cpu=2",
		"mem=1X",
	} {
		if got, err := ParseTRES(bad); err == nil {
			t.Errorf("ParseTRES(%q) = %q; want an error", bad, got)
		}
	}
}
