package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ParseJSON reads one JSON value into a tree. A repeated key takes the last value.
func ParseJSON(src []byte) (*Node, *Error) {
	if len(src) > MaxSize {
		return nil, &Error{Message: fmt.Sprintf("the configuration exceeds %d bytes: it has %d", MaxSize, len(src))}
	}
	j := &jsonTree{src: src, dec: json.NewDecoder(bytes.NewReader(src)), line: 1}
	j.dec.UseNumber()
	n, f := j.tree(0)
	if f != nil {
		return nil, f
	}
	if _, err := j.dec.Token(); err != io.EOF {
		return nil, j.fault(&Node{}, "not valid JSON: more than one value")
	}
	return n, nil
}

type jsonTree struct {
	src   []byte
	dec   *json.Decoder
	nodes int
	line  int
	start int // of the line, in src
	seen  int // bytes whose lines are counted
}

// place gives the line and column of the value that comes next.
func (j *jsonTree) place() (line, col int) {
	next := int(j.dec.InputOffset())
	for next < len(j.src) && strings.IndexByte(" \t\r\n,:", j.src[next]) >= 0 {
		next++
	}
	for ; j.seen < next && j.seen < len(j.src); j.seen++ {
		if j.src[j.seen] == '\n' {
			j.line++
			j.start = j.seen + 1
		}
	}
	return j.line, next - j.start + 1
}

func (j *jsonTree) fault(n *Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
}

func (j *jsonTree) tree(depth int) (*Node, *Error) {
	n := &Node{}
	n.Line, n.Column = j.place()
	j.nodes++
	switch {
	case depth > maxDepth:
		return nil, j.fault(n, "the configuration is nested deeper than %d levels", maxDepth)
	case j.nodes > maxNodes:
		return nil, j.fault(n, "the configuration has more than %d values", maxNodes)
	}
	tok, err := j.dec.Token()
	if err != nil {
		return nil, j.fault(n, "not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	switch v := tok.(type) {
	case nil:
		n.Form = Null
	case bool:
		n.Form, n.Truth = Bool, v
	case string:
		n.Form, n.Text = Text, v
	case json.Number:
		n.jsonNumber(string(v))
	case json.Delim:
		return n, j.inside(n, v, depth)
	}
	return n, nil
}

// inside reads a list or a mapping up to its end.
func (j *jsonTree) inside(n *Node, open json.Delim, depth int) *Error {
	n.Form = List
	if open == '{' {
		n.Form = Mapping
	}
	for j.dec.More() {
		if open == '[' {
			item, f := j.tree(depth + 1)
			if f != nil {
				return f
			}
			n.Items = append(n.Items, item)
			continue
		}
		key, f := j.tree(depth + 1)
		if f != nil {
			return f
		}
		value, f := j.tree(depth + 1)
		if f != nil {
			return f
		}
		n.set(key, value)
	}
	if _, err := j.dec.Token(); err != nil {
		return j.fault(n, "not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// jsonNumber keeps whole numbers whole: 5 is one, 5.0 is not.
func (n *Node) jsonNumber(s string) {
	if strings.ContainsAny(s, ".eE") {
		n.Form = Real
		n.Float, _ = strconv.ParseFloat(s, 64) // too large: infinite
		return
	}
	n.Form = Int
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		n.Huge, n.Text = true, s
	}
	n.Int = v
}
