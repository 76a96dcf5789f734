package translate

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// FuzzThereAndBack: whatever is converted is taken by the way back, which never fails.
func FuzzThereAndBack(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(ar.Files[0].Data)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		o := Options{Name: "in", Dir: "/home/ann", Now: now}
		if out, err := Script(in, o); err == nil {
			if _, err := Configuration([]byte(out.Output), o); err != nil {
				t.Errorf("%v in\n%s", err, out.Output)
			}
		}
		_, _ = Configuration(in, o)
	})
}
