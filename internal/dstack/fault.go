package dstack

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
)

// faults collects what is wrong with one file. The zero value is not usable: file names it in messages.
type faults struct {
	file string
	list []core.Fault
}

// add notes a fault at n. path is the key's path ("resources.gpu"), "" for the document.
func (f *faults) add(n *yaml.Node, path, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if path != "" {
		msg = path + ": " + msg
	}
	where := ""
	if n != nil && n.Line > 0 {
		where = fmt.Sprintf("line %d, column %d", n.Line, n.Column)
	}
	f.list = append(f.list, core.Fault{Path: where, Message: msg})
}

// err gives all faults as one error with a line each, or nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	lines := make([]string, len(f.list))
	for i, x := range f.list {
		lines[i] = f.file + ": " + x.Message
		if x.Path != "" {
			lines[i] = f.file + ", " + x.Path + ": " + x.Message
		}
	}
	return &core.Error{Code: core.Invalid, Reason: "invalid_configuration", Message: strings.Join(lines, "\n"), Faults: f.list}
}

// nearest gives the word of known that a typing mistake may have turned into got, or "".
func nearest(got string, known []string) string {
	best, bestAt := "", 3 // more than two edits is another word
	for _, k := range known {
		if d := distance(strings.ToLower(got), k); d < bestAt && d < len(k) {
			best, bestAt = k, d
		}
	}
	return best
}

// distance counts the edits (insert, delete, replace, swap of neighbours) between two short words.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
