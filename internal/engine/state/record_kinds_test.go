package state

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestEveryInputIsRecorded reads the source: an input that recordings do not know would end a recording at its first
// use.
func TestEveryInputIsRecorded(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var source []byte
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		source = append(source, text...)
	}
	found := regexp.MustCompile(`func \(\*(\w+)\) +input\(\)`).FindAllSubmatch(source, -1)
	if len(found) < 20 {
		t.Fatalf("only %d inputs found", len(found))
	}
	for _, m := range found {
		if kindByName[string(m[1])] == nil {
			t.Errorf("input %s is missing in inputs", m[1])
		}
	}
}
