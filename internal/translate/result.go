package translate

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"
)

// Result is a converted file.
type Result struct {
	Output string `json:"output"`
	Notes  []Note `json:"notes"`
	// Files are the parts of Output where they belong into several files, in order; nil: it is one.
	Files []File `json:"files,omitempty"`
}

// File is one of several files.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Note is something that the user should know of a conversion.
type Note struct {
	Kind NoteKind `json:"kind"`
	Name string   `json:"name"` // the option, key or variable as it was written
	Text string   `json:"text"`
}

// NoteKind says what a note is about.
type NoteKind string

// The kinds.
const (
	NoEqual  NoteKind = "no_equal" // it has no effect in the output
	Differs  NoteKind = "differs"  // its effect in the output is not quite the same
	Variable NoteKind = "variable" // a variable that the commands use, and what it is in the output
)

// Options are what a conversion needs beside the file.
type Options struct {
	Name  string // of the file, for messages and comments
	Dir   string // where the user is
	Now   time.Time
	Stock bool // write additions as tags, which a stock client of dstack sends
}

// mark begins comments that a conversion writes, lineMark ends lines of commands that only it needs. The way back drops
// both.
const (
	mark     = "#:"
	lineMark = "#:bireme"
)

// notes collects what is to be said, one line a name and kind.
type notes []Note

func (n *notes) add(kind NoteKind, name, text string) {
	if !slices.ContainsFunc(*n, func(o Note) bool { return o.Kind == kind && o.Name == name }) {
		*n = append(*n, Note{kind, name, text})
	}
}

// titles are the headings of the kinds, in the order they are written in.
var titles = []struct {
	kind NoteKind
	text string
}{
	{NoEqual, "Without an equal here, and without effect:"},
	{Differs, "Not quite the same here:"},
	{Variable, "Variables that the commands use:"},
}

// head is the comment that an output begins with.
func (n notes) head(from string) string {
	var b strings.Builder
	b.WriteString(mark + " Converted from " + oneLine(cmp.Or(from, "standard input")) + " by bireme convert.\n")
	for _, t := range titles {
		first := true
		for _, note := range n {
			if note.Kind != t.kind {
				continue
			}
			if first {
				b.WriteString(mark + " " + t.text + "\n")
				first = false
			}
			b.WriteString(mark + "   " + oneLine(note.Name) + ": " + oneLine(note.Text) + "\n")
		}
	}
	return b.String()
}

// oneLine keeps a text on the line of its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// list gives the notes, never nil: programs read them.
func (n notes) list() []Note {
	if n == nil {
		return []Note{}
	}
	return n
}

// as is errors.As.
func as[T error](err error, to *T) bool { return errors.As(err, to) }
