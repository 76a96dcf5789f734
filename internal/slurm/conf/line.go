package conf

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Where is a place in a file.
type Where struct {
	File string
	Line int
}

// String is FILE:LINE.
func (w Where) String() string { return fmt.Sprintf("%s:%d", w.File, w.Line) }

// Fault is something wrong at a place.
type Fault struct {
	Where
	Text string
}

// String is the place and what is wrong there.
func (f Fault) String() string { return f.Where.String() + ": " + f.Text }

// Pair is one Key=Value. Key is as written; compare it with Is.
type Pair struct{ Key, Value string }

// Is reports whether the pair has a key; keys have no case.
func (p Pair) Is(key string) bool { return strings.EqualFold(p.Key, key) }

// Line is the pairs of one logical line.
type Line struct {
	Where
	Pairs []Pair
}

// Get finds the last value of a key.
func (l *Line) Get(key string) (value string, ok bool) {
	for _, p := range l.Pairs {
		if p.Is(key) {
			value, ok = p.Value, true
		}
	}
	return value, ok
}

// deepest is how many files may include each other in a row; more is a circle.
const deepest = 16

// reader collects the lines of a file and what it includes.
type reader struct {
	fsys    fs.FS
	cluster string // for %c in includes
	lines   []Line
	faults  []Fault
}

func (r *reader) fault(w Where, format string, args ...any) {
	r.faults = append(r.faults, Fault{w, fmt.Sprintf(format, args...)})
}

// file reads one file; depth counts the includes that lead to it.
func (r *reader) file(name string, depth int) error {
	data, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return err
	}
	at := Where{File: name}
	for len(data) > 0 {
		at.Line++
		start := at
		var text string
		for { // a backslash at the end takes the next line in
			var raw []byte
			raw, data, _ = bytes.Cut(data, []byte("\n"))
			line := strings.TrimRight(uncomment(string(raw)), " \t\r")
			more := strings.HasSuffix(line, `\`) && len(data) > 0
			text += strings.TrimSuffix(line, `\`)
			if !more {
				break
			}
			at.Line++
		}
		r.line(start, text, depth)
	}
	return nil
}

// uncomment cuts a line at its first # that is neither escaped nor in quotes.
func uncomment(line string) string {
	quoted := false
	for i := range len(line) {
		switch line[i] {
		case '"':
			quoted = !quoted
		case '#':
			if !quoted && (i == 0 || line[i-1] != '\\') {
				return line[:i]
			}
		}
	}
	return line
}

func (r *reader) line(at Where, text string, depth int) {
	text = strings.TrimSpace(strings.ReplaceAll(text, `\#`, "#"))
	if text == "" {
		return
	}
	word, rest, _ := strings.Cut(text, " ")
	if strings.EqualFold(word, "include") {
		r.include(at, strings.TrimSpace(rest), depth)
		return
	}
	l := Line{Where: at}
	for text != "" {
		key, after, ok := strings.Cut(text, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" || strings.ContainsAny(key, " \t\"") {
			r.fault(at, "%q is not KEY=VALUE", firstWord(text))
			break
		}
		after = strings.TrimLeft(after, " \t")
		var value string
		if quoted, is := strings.CutPrefix(after, `"`); is {
			v, tail, closed := strings.Cut(quoted, `"`)
			if !closed {
				r.fault(at, "the quotes of %s are not closed", key)
			}
			value, text = v, tail
		} else {
			value, text = after, ""
			if i := strings.IndexAny(after, " \t"); i >= 0 {
				value, text = after[:i], after[i:]
			}
		}
		l.Pairs = append(l.Pairs, Pair{key, value})
		text = strings.TrimLeft(text, " \t")
	}
	if len(l.Pairs) > 0 {
		if l.Pairs[0].Is("ClusterName") {
			r.cluster = strings.ToLower(l.Pairs[0].Value)
		}
		r.lines = append(r.lines, l)
	}
}

func firstWord(text string) string {
	if f := strings.Fields(text); len(f) > 0 {
		return f[0]
	}
	return text
}

func (r *reader) include(at Where, name string, depth int) {
	name = strings.Trim(strings.ReplaceAll(name, "%c", r.cluster), `"`)
	switch {
	case name == "":
		r.fault(at, "Include names no file")
		return
	case depth >= deepest:
		r.fault(at, "%d files include each other in a row; is it a circle?", deepest)
		return
	}
	// Relative names lie beside slurm.conf, wherever the including file is. The file system's root is its folder, or, for
	// absolute names, what the caller mounted there.
	if err := r.file(path.Clean(strings.TrimPrefix(name, "./")), depth+1); err != nil {
		r.fault(at, "Include %s: %v", name, err)
	}
}
