package config

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// What is read never panics, and its normal form is read again as the same.
func FuzzRead(f *testing.F) {
	for _, file := range []string{"testdata/refused.txt", "testdata/normal.txt"} {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, block := range strings.Split("\n"+string(b), "\n=== ")[1:] {
			_, src, _ := strings.Cut(block, "\n")
			src, _, _ = strings.Cut(src, "\n---\n")
			f.Add([]byte(src + "\n"))
		}
	}
	f.Add([]byte("a: &a [1,1]\nb: &b [*a,*a]\nc: &c [*b,*b]\ntype: *c"))
	f.Add([]byte("type: task\ncommands: &x [*x]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		_, _ = ReadProfiles(src)
		_, _ = ReadJSON(src)
		c, err := Read(src)
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) || len(err.Error()) == 0 {
				t.Fatalf("the error is no list of faults: %v", err)
			}
			for _, d := range faults.Details("body") {
				if _, err = json.Marshal(d); err != nil {
					t.Fatal(err)
				}
			}
			return
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadJSON(text)
		if err != nil {
			t.Fatalf("%s is refused: %v", text, err)
		}
		if text2, _ := json.Marshal(again); string(text2) != string(text) {
			t.Fatalf("not the same:\n%s\n%s", text, text2)
		}
	})
}

// A file that is small but unfolds, nests or repeats without end is refused in time.
func TestBounds(t *testing.T) {
	t.Parallel()
	bomb := "type: task\na: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		from := "*a" + intText(i-1)
		bomb += "b" + intText(i) + ": &a" + intText(i) + " [" + from + strings.Repeat(","+from, 9) + "]\n"
	}
	var keys strings.Builder
	keys.WriteString("type: task\ncommands: [a]\nenv:\n")
	for i := range 40_000 {
		keys.WriteString("  K" + strings.Repeat("x", i%3) + intText(i) + ": v\n")
	}
	for name, c := range map[string]struct{ src, want string }{
		"aliases":  {bomb, "unfolds to more than"},
		"a loop":   {"type: task\ncommands: &x [*x]\n", "nested deeper"},
		"depth":    {"type: task\ncommands: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), "nested deeper"},
		"size":     {"type: task\n#" + strings.Repeat("x", 2<<20), "exceeds"},
		"two":      {"type: task\n---\ntype: task\n", "one configuration"},
		"many":     {keys.String(), ""},
		"binary":   {"type: task\ncommands: [!!binary aGk=]\n", "tag !!binary"},
		"tag":      {"type: task\npriority: !!int x\n", "tag !!int"},
		"key":      {"type: task\n? [a]\n: b\n", "key must be a word"},
		"no merge": {"type: task\n<<: 5\n", "merges mappings"},
	} {
		_, err := Read([]byte(c.src))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	if _, err := ReadJSON([]byte(strings.Repeat("[", 100_000))); err == nil || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("deep JSON: %v", err)
	}
}
