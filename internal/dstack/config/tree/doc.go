// Package tree reads YAML 1.1 and JSON into one kind of tree, whose values know their line and column.
//
// Plain scalars of YAML follow the rules that dstack's files are written for (PyYAML's): on, off, yes and no are
// booleans, 0777 is octal, 1_000 and 22:22 are numbers, a repeated key takes the last value, << merges. Aliases are
// unfolded; depth, size and the number of values are bounded.
package tree

// Error is a text that is no tree.
type Error struct {
	Line, Column int // from 1; 0: not known
	Message      string
}

func (e *Error) Error() string { return e.Message }
