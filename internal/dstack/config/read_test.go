package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// vector is a configuration and what is expected of it.
type vector struct{ name, yaml, want string }

// vectors reads a file of configurations: each begins with "=== NAME", and after a line "---" says what is expected.
func vectors(t *testing.T, file string) (list []vector) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split("\n"+string(b), "\n=== ")[1:] {
		name, rest, _ := strings.Cut(block, "\n")
		src, want, ok := strings.Cut("\n"+rest, "\n---\n")
		if !ok {
			t.Fatalf("%s: %s has no ---", file, name)
		}
		list = append(list, vector{name, strings.TrimPrefix(src+"\n", "\n"), strings.TrimSpace(want)})
	}
	return list
}

// Every configuration that dstack 0.22.5 refuses is refused, with the right place.
func TestRefused(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "testdata/refused.txt") {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read([]byte(v.yaml))
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(v.want, err.Error()); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// The normal form of every configuration is what the client of dstack 0.22.5 sends. Each expected line is a key, with
// dots, and its value; the key "." is the whole configuration.
func TestNormalForm(t *testing.T) {
	t.Parallel()
	for _, v := range vectors(t, "testdata/normal.txt") {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			c, err := Read([]byte(v.yaml))
			if err != nil {
				t.Fatal(err)
			}
			text, err := tree.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range strings.Split(v.want, "\n") {
				key, want, _ := strings.Cut(line, " ")
				if got := valueAt(t, text, key); got != want {
					t.Errorf("%s:\n got %s\nwant %s", key, got, want)
				}
			}
			again, err := ReadJSON(text)
			if err != nil {
				t.Fatalf("the normal form is refused: %v", err)
			}
			text2, err := tree.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(text2)); diff != "" {
				t.Errorf("read again: -was +is\n%s", diff)
			}
		})
	}
}

// valueAt gives the JSON of a key of text, as it stands there.
func valueAt(t *testing.T, text []byte, key string) string {
	t.Helper()
	if key == "." {
		return string(text)
	}
	at := json.RawMessage(text)
	for _, step := range strings.Split(key, ".") {
		var list []json.RawMessage
		var m map[string]json.RawMessage
		switch {
		case json.Unmarshal(at, &m) == nil:
			v, there := m[step]
			if !there {
				return "absent"
			}
			at = v
		case json.Unmarshal(at, &list) == nil && len(step) == 1 && int(step[0]-'0') < len(list):
			at = list[step[0]-'0']
		default:
			return "absent"
		}
	}
	return string(at)
}

// TestNames: a name that no server would take is one of the faults, at its place.
func TestNames(t *testing.T) {
	t.Parallel()
	check := func(kind Kind, name string) error { return fmt.Errorf("%s %s is taken", kind, name) }
	for text, want := range map[string]string{
		"type: task\nnmae: x\nname: one\nnodes: 0\nimage: x\n": "line 3, column 7: task.name: task one is taken\n" +
			"line 4, column 8: task.nodes: must be at least 1, not 0\n" +
			"line 2, column 1: task.nmae: unknown key; did you mean name?",
		"name: two\ntype: dev-environment\n": "line 1, column 7: dev-environment.name: dev-environment two is taken",
		"type: task\nimage: x\n":             "",
	} {
		_, err := ReadNamed([]byte(text), check)
		if got := fmt.Sprint(err); got != want && (err != nil || want != "") {
			t.Errorf("%s\n%s", text, got)
		}
	}
}
