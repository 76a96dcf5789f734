package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestCell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                             "",
		"train-7":                      "train-7",
		"übung 訓練 🚀 שלום":              "übung 訓練 🚀 שלום",
		"a\x1b[2Jb":                    "a?[2Jb",
		"a\x1b]0;title\x07b":           "a?]0;title?b",
		"two\nlines\ttab\rback":        "two lines tab back",
		"c1 \u009b31m and raw \x9b31m": "c1 ?31m and raw ?31m",
		"del\x7f":                      "del?",
		"gpj.\u202eexe\u202c":          "gpj.?exe?",
		"\u2066x\u2069 \u2028y":        "?x? ?y",
		"cut \xe2\x82":                 "cut ??",
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		if Is(text) != (text == want) {
			t.Errorf("%q is plain: %v", text, Is(text))
		}
	}
	if got := Message("a\n\tb\x1bc\r"); got != "a\n\tb?c " {
		t.Errorf("got %q", got)
	}
}

func FuzzPlain(f *testing.F) {
	f.Add("a\x1b[0m\u202e\u009b\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := Cell(text)
		if !Is(got) || Cell(got) != got || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
		if strings.IndexFunc(got, unicode.IsControl) >= 0 {
			t.Fatalf("%q keeps a control character: %q", text, got)
		}
		if Is(text) && got != text {
			t.Fatalf("%q was plain and became %q", text, got)
		}
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var was, is string
		safe := JSON(data)
		if json.Unmarshal(data, &was) != nil || json.Unmarshal(safe, &is) != nil || was != is || !Is(string(safe)) {
			t.Fatalf("%q: JSON %q became %q", text, data, safe)
		}
	})
}

func TestWriterCutsNoRunes(t *testing.T) {
	t.Parallel()
	text := "übung 訓練 🚀\tx\n\x1b[31mred\u009b\u202e\n"
	for size := 1; size <= len(text); size++ {
		var b strings.Builder
		w := &Writer{W: &b}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if m, err := w.Write([]byte(rest[:n])); m != n || err != nil {
				t.Fatal(m, err)
			}
			rest = rest[n:]
		}
		if want := Message(text); b.String() != want {
			t.Fatalf("in pieces of %d: %q, want %q", size, b.String(), want)
		}
	}
}

// TestFirstByWords: every byte is judged alike wherever it is in a word of eight.
func TestFirstByWords(t *testing.T) {
	t.Parallel()
	for c := range 256 {
		for size := 1; size <= 19; size++ {
			for at := range size {
				text := []byte("abcdefghijklmnopqrs")[:size]
				text[at] = byte(c)
				want := -1
				if c < 0x20 || c >= 0x7f {
					want = at
				}
				if got := first(string(text), false); got != want {
					t.Fatalf("%q: %d, want %d", text, got, want)
				}
			}
		}
	}
}
