package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the one document of src into a tree, with YAML 1.1's rules for plain scalars.
func parseYAML(src []byte) (*node, *Fault) {
	if len(src) > MaxSize {
		return nil, &Fault{Message: fmt.Sprintf("the configuration exceeds %d bytes: it has %d", MaxSize, len(src))}
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return &node{form: isNull, line: 1, col: 1}, nil
	case err != nil:
		return nil, syntaxFault(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Fault{Line: more.Line, Column: max(more.Column, 1), Message: "expected one configuration per file"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxFault(err)
	}
	if len(doc.Content) == 0 {
		return &node{form: isNull, line: 1, col: 1}, nil
	}
	y := &unfolder{}
	return y.tree(doc.Content[0], 0)
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxFault words an error of the YAML parser, which names its line in the text.
func syntaxFault(err error) *Fault {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
	f := &Fault{Message: text}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Column, f.Message = 1, text[len(m[0]):]
	}
	f.Message = "not valid YAML: " + f.Message
	return f
}

// unfolder turns the parser's nodes into a tree. Aliases are unfolded, so that the nodes it makes are counted.
type unfolder struct{ nodes int }

func (y *unfolder) tree(n *yaml.Node, depth int) (*node, *Fault) {
	y.nodes++
	switch {
	case depth > maxDepth:
		return nil, at(n, "the configuration is nested deeper than %d levels", maxDepth)
	case y.nodes > maxNodes:
		return nil, at(n, "the configuration unfolds to more than %d values", maxNodes)
	}
	t := &node{line: n.Line, col: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		t, f := y.tree(n.Alias, depth+1)
		if f == nil {
			t.line, t.col = n.Line, n.Column
		}
		return t, f
	case yaml.ScalarNode:
		return t, scalar(t, n)
	case yaml.SequenceNode:
		t.form = isList
		for _, item := range n.Content {
			v, f := y.tree(item, depth+1)
			if f != nil {
				return nil, f
			}
			t.items = append(t.items, v)
		}
		return t, nil
	case yaml.MappingNode:
		t.form = isMapping
		return t, y.mapping(t, n, depth)
	}
	return nil, at(n, "unexpected YAML")
}

// mapping reads keys and values; what << merges comes first, and keys of the mapping itself win.
func (y *unfolder) mapping(t *node, n *yaml.Node, depth int) *Fault {
	var own []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		value, f := y.tree(v, depth+1)
		if f != nil {
			return f
		}
		if k.Kind == yaml.ScalarNode && k.Value == "<<" && k.Style&quotedStyles == 0 {
			if f := merge(t, value); f != nil {
				return f
			}
			continue
		}
		key, f := y.tree(k, depth+1)
		if f != nil {
			return f
		}
		if key.form == isList || key.form == isMapping {
			return at(k, "a key must be a word, not %s", key.describe())
		}
		own = append(own, entry{key, value})
	}
	for _, e := range own {
		t.set(e.key, e.value)
	}
	return nil
}

// merge adds the keys of a mapping, or of a list of them, of which the earlier win.
func merge(t, value *node) *Fault {
	list := []*node{value}
	if value.form == isList {
		list = value.items
	}
	for _, m := range list {
		if m.form != isMapping {
			return &Fault{Line: m.line, Column: m.col, Message: "<< merges mappings, not " + m.describe()}
		}
		for _, e := range m.keys {
			if e.key.form != isText || t.get(e.key.text) == nil {
				t.set(e.key, e.value)
			}
		}
	}
	return nil
}

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func scalar(t *node, n *yaml.Node) *Fault {
	if n.Style&yaml.TaggedStyle != 0 {
		return tagged(t, n)
	}
	if n.Style&quotedStyles != 0 {
		t.form, t.text = isText, n.Value
		return nil
	}
	t.raw = n.Value
	resolve(t, n.Value)
	return nil
}

// tagged reads a scalar whose type is written before it.
func tagged(t *node, n *yaml.Node) *Fault {
	if n.Tag == "!!str" || n.Tag == "!" {
		t.form, t.text = isText, n.Value
		return nil
	}
	resolve(t, n.Value)
	want := map[string]form{"!!int": isInt, "!!float": isFloat, "!!bool": isBool, "!!null": isNull}
	got, known := want[n.Tag]
	switch {
	case !known:
		return at(n, "the YAML tag %s is not supported", n.Tag)
	case got == isFloat && t.form == isInt:
		t.form, t.float = isFloat, float64(t.int)
	case got != t.form:
		return at(n, "%s is not what the YAML tag %s says", quoted(n.Value), n.Tag)
	}
	return nil
}

func at(n *yaml.Node, format string, args ...any) *Fault {
	return &Fault{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
}

// The plain scalars of YAML 1.1 (yaml.org/type), where they differ from those of 1.2.
var (
	yamlInt = lazy(`^[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|[1-9][0-9_]*(:[0-5]?[0-9])+)$`)
	yamlFlt = lazy(`^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	yamlTime = lazy(`^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}` +
		`:[0-9]{2}:[0-9]{2}(\.[0-9]*)?([ \t]*(Z|[-+][0-9]{1,2}(:[0-9]{2})?))?)$`)
	yamlBool = lazy(`^(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
)

func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// resolve gives a plain scalar its type.
func resolve(t *node, s string) {
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		t.form = isNull
	case yamlBool().MatchString(s):
		t.form = isBool
		switch strings.ToLower(s) {
		case "yes", "true", "on":
			t.truth = true
		}
	case yamlInt().MatchString(s):
		t.form = isInt
		t.number(s)
	case yamlFlt().MatchString(s):
		t.form, t.float = isFloat, floatOf(s)
	case yamlTime().MatchString(s):
		t.form, t.text = isTime, s
	default:
		t.form, t.text = isText, s
	}
}

// number reads an integer of YAML 1.1: decimal, 0b, 0x, octal after a 0, or base 60 with colons.
func (n *node) number(s string) {
	digits := strings.ReplaceAll(s, "_", "")
	body := strings.TrimLeft(digits, "+-")
	base := 10
	switch {
	case strings.Contains(body, ":"):
		n.sexagesimal(digits)
		return
	case strings.HasPrefix(body, "0b"):
		body, base = body[2:], 2
	case strings.HasPrefix(body, "0x"):
		body, base = body[2:], 16
	case len(body) > 1 && body[0] == '0':
		body, base = body[1:], 8
	}
	sign := ""
	if digits[0] == '-' {
		sign = "-"
	}
	v, err := strconv.ParseInt(sign+body, base, 64)
	if err != nil {
		n.huge, n.text = true, sign+body
	}
	n.int = v
}

func (n *node) sexagesimal(digits string) {
	sign := int64(1)
	if digits[0] == '-' {
		sign = -1
	}
	for _, part := range strings.Split(strings.TrimLeft(digits, "+-"), ":") {
		v, err := strconv.ParseInt(part, 10, 64)
		if err != nil || n.int > 1<<56 {
			n.huge, n.text = true, digits
			return
		}
		n.int = n.int*60 + v
	}
	n.int *= sign
}

func floatOf(s string) float64 {
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	if strings.HasSuffix(s, ".inf") || strings.HasSuffix(s, ".nan") {
		s = strings.Replace(s, ".", "", 1)
	}
	if !strings.Contains(s, ":") {
		v, _ := strconv.ParseFloat(s, 64) // the form was matched; what is too large is infinite
		return v
	}
	sign := 1.0
	if s[0] == '-' {
		sign = -1
	}
	total := 0.0
	for _, part := range strings.Split(strings.TrimLeft(s, "+-"), ":") {
		v, _ := strconv.ParseFloat(part, 64)
		total = total*60 + v
	}
	return sign * total
}
