package state

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write what happened into testdata/*.txt")

// TestScenarios plays testdata/*.txt. A line that begins with "> " is a command; what follows it, up to the next
// command, comment or empty line, is what it printed. After every command the laws of world.check hold. The commands
// are described in testdata/README.md; refresh with `go test -run Scenarios -rewrite` and read the diff.
func TestScenarios(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, want)
			if *rewrite {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Fatalf("%s: written (-), happened (+); refresh with -rewrite:\n%s", file, diff)
			}
		})
	}
}

// TestEveryVerbIsDescribed holds the README of the scenario language to the commands there are.
func TestEveryVerbIsDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for verb := range commands {
		if !regexp.MustCompile("(?m)^\\|.*`" + verb + "[` ]").Match(text) {
			t.Errorf("testdata/README.md does not describe %q", verb)
		}
	}
}

func play(t *testing.T, text []byte) []byte {
	var out bytes.Buffer
	s := &script{t: t}
	printed := false // the lines being read are a command's output
	for in := bufio.NewScanner(bytes.NewReader(text)); in.Scan(); {
		line := in.Text()
		cmd, is := strings.CutPrefix(line, "> ")
		switch {
		case is:
			fmt.Fprintln(&out, line)
			s.line(strings.Fields(cmd), &out)
			printed = true
		case line == "" || strings.HasPrefix(line, "#"):
			fmt.Fprintln(&out, line)
			printed = false
		case !printed:
			t.Fatalf("%q is neither a command nor a comment", line)
		}
	}
	return out.Bytes()
}
