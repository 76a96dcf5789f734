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
	return &core.Error{
		Code: core.Invalid, Reason: "invalid_configuration", Message: strings.Join(lines, "\n"),
		Faults: f.list,
	}
}
