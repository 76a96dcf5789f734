package dstack

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"bireme.dev/bireme/internal/core"
)

var rewrite = flag.Bool("rewrite", false, "write the results into testdata; then read the diff")

// caller is the environment of the person who applies in tests.
func caller(name string) (string, bool) {
	v, ok := map[string]string{"TOKEN": "hunter2", "EMPTY": ""}[name]
	return v, ok
}

// TestTranscripts runs every NAME.yml of testdata/*.txtar and compares with the NAME.want behind it: the submission as
// JSON and the script, or the error.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			for _, f := range ar.Files {
				want[f.Name] = string(f.Data)
			}
			out := &txtar.Archive{Comment: ar.Comment}
			for _, f := range ar.Files {
				base, isIn := strings.CutSuffix(f.Name, ".yml")
				if !isIn {
					continue
				}
				got := transcript(f.Name, f.Data)
				out.Files = append(out.Files, f, txtar.File{Name: base + ".want", Data: []byte(got)})
				if diff := cmp.Diff(want[base+".want"], got); diff != "" && !*rewrite {
					t.Errorf("%s (-want +got):\n%s", f.Name, diff)
				}
			}
			if *rewrite {
				if err := os.WriteFile(file, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func transcript(name string, src []byte) string {
	task, err := Parse(name, src)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	sub, err := task.Submit(Options{
		Name: first(task.Name, "swift-oar-1"), Lookup: caller,
		Args: []string{"--lr", "0.1", "it's"},
	})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	script := sub.Script
	sub.Script, sub.Config = "", ""
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(sub); err != nil {
		return "error: " + err.Error() + "\n"
	}
	return b.String() + script
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func TestParseGivesFaultsWithPlaces(t *testing.T) {
	t.Parallel()
	_, err := Parse("x.yml", []byte("type: task\ncomands: [a]\nresources:\n  gpu: 'A100:'\n"))
	var e *core.Error
	if core.CodeOf(err) != core.Invalid || !errors.As(err, &e) || len(e.Faults) != 2 {
		t.Fatalf("want two faults, got %v", err)
	}
	want := []core.Fault{
		{Path: "line 2, column 1", Message: "comands: unknown key; did you mean commands?"},
		{Path: "line 4, column 8", Message: `resources.gpu: "A100:" has an empty part`},
	}
	if diff := cmp.Diff(want, e.Faults); diff != "" {
		t.Error(diff)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	if _, err := Parse("x.yml", make([]byte, MaxSize+1)); core.CodeOf(err) != core.TooLarge {
		t.Errorf("got %v", err)
	}
}

// FuzzParse: no input makes the parser panic; what it accepts can be submitted or is refused with faults, and both read
// the same a second time.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		if ar, err := txtar.ParseFile(file); err == nil {
			for _, in := range ar.Files {
				f.Add(in.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if a, b := transcript("f.yml", src), transcript("f.yml", src); a != b {
			t.Errorf("two readings differ:\n%s\n%s", a, b)
		}
		task, err := Parse("f.yml", src)
		if err != nil {
			if core.CodeOf(err) != core.Invalid && core.CodeOf(err) != core.TooLarge {
				t.Errorf("an error without a fitting code: %v", err)
			}
			return
		}
		sub, err := task.Submit(Options{Name: "a-name", Lookup: caller})
		if err == nil && (!strings.HasPrefix(sub.Script, "#!/") && sub.Script != ownScript || sub.Spec.Shape.NodesMin < 1) {
			t.Errorf("accepted, but not runnable: %+v", sub)
		}
	})
}
