package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// ParseYAML reads the one document of src into a tree, with YAML 1.1's rules for plain scalars.
func ParseYAML(src []byte) (*Node, *Error) {
	if len(src) > MaxSize {
		return nil, &Error{Message: fmt.Sprintf("the configuration exceeds %d bytes: it has %d", MaxSize, len(src))}
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		return &Node{Form: Null, Line: 1, Column: 1}, nil
	case err != nil:
		return nil, syntaxFault(err)
	}
	switch err := dec.Decode(&more); {
	case err == nil:
		return nil, &Error{Line: more.Line, Column: max(more.Column, 1), Message: "expected one configuration per file"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxFault(err)
	}
	if len(doc.Content) == 0 {
		return &Node{Form: Null, Line: 1, Column: 1}, nil
	}
	y := &unfolder{}
	return y.tree(doc.Content[0], 0)
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntaxFault words an error of the YAML parser, which names its line in the text.
func syntaxFault(err error) *Error {
	text := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", " "), "yaml: ")
	f := &Error{Message: text}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		f.Column, f.Message = 1, text[len(m[0]):]
	}
	f.Message = "not valid YAML: " + f.Message
	return f
}

// unfolder turns the parser's nodes into a tree. Aliases are unfolded, so that the nodes it makes are counted.
type unfolder struct{ nodes int }

func (y *unfolder) tree(n *yaml.Node, depth int) (*Node, *Error) {
	y.nodes++
	switch {
	case depth > maxDepth:
		return nil, at(n, "the configuration is nested deeper than %d levels", maxDepth)
	case y.nodes > maxNodes:
		return nil, at(n, "the configuration unfolds to more than %d values", maxNodes)
	}
	t := &Node{Line: n.Line, Column: n.Column}
	switch n.Kind {
	case yaml.AliasNode:
		alias, f := y.tree(n.Alias, depth+1)
		if f == nil {
			alias.Line, alias.Column = n.Line, n.Column
		}
		return alias, f
	case yaml.ScalarNode:
		return t, scalar(t, n)
	case yaml.SequenceNode:
		t.Form = List
		for _, item := range n.Content {
			v, f := y.tree(item, depth+1)
			if f != nil {
				return nil, f
			}
			t.Items = append(t.Items, v)
		}
		return t, nil
	case yaml.MappingNode:
		t.Form = Mapping
		return t, y.mapping(t, n, depth)
	}
	return nil, at(n, "unexpected YAML")
}

// mapping reads keys and values; what << merges comes first, and keys of the mapping itself win.
func (y *unfolder) mapping(t *Node, n *yaml.Node, depth int) *Error {
	var own []Entry
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
		if key.Form == List || key.Form == Mapping {
			return at(k, "a key must be a word, not %s", key.Describe())
		}
		own = append(own, Entry{key, value})
	}
	for _, e := range own {
		t.set(e.Key, e.Value)
	}
	return nil
}

// merge adds the keys of a mapping, or of a list of them, of which the earlier win.
func merge(t, value *Node) *Error {
	list := []*Node{value}
	if value.Form == List {
		list = value.Items
	}
	for _, m := range list {
		if m.Form != Mapping {
			return &Error{Line: m.Line, Column: m.Column, Message: "<< merges mappings, not " + m.Describe()}
		}
		for _, e := range m.Keys {
			if e.Key.Form != Text || t.Get(e.Key.Text) == nil {
				t.set(e.Key, e.Value)
			}
		}
	}
	return nil
}

const quotedStyles = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

func scalar(t *Node, n *yaml.Node) *Error {
	if n.Style&yaml.TaggedStyle != 0 {
		return tagged(t, n)
	}
	if n.Style&quotedStyles != 0 {
		t.Form, t.Text = Text, n.Value
		return nil
	}
	t.Raw = n.Value
	resolve(t, n.Value)
	return nil
}

// tagged reads a scalar whose type is written before it.
func tagged(t *Node, n *yaml.Node) *Error {
	if n.Tag == "!!str" || n.Tag == "!" {
		t.Form, t.Text = Text, n.Value
		return nil
	}
	resolve(t, n.Value)
	want := map[string]Form{"!!int": Int, "!!float": Real, "!!bool": Bool, "!!null": Null}
	got, known := want[n.Tag]
	switch {
	case !known:
		return at(n, "the YAML tag %s is not supported", n.Tag)
	case got == Real && t.Form == Int:
		t.Form, t.Float = Real, float64(t.Int)
	case got != t.Form:
		return at(n, "%s is not what the YAML tag %s says", Quote(n.Value), n.Tag)
	}
	return nil
}

func at(n *yaml.Node, format string, args ...any) *Error {
	return &Error{Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)}
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

// maxDigits is the longest number; what is longer is a text.
const maxDigits = 4000

func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// resolve gives a plain scalar its type.
func resolve(t *Node, s string) {
	switch {
	case s == "" || s == "~" || s == "null" || s == "Null" || s == "NULL":
		t.Form = Null
	case yamlBool().MatchString(s):
		t.Form = Bool
		switch strings.ToLower(s) {
		case "yes", "true", "on":
			t.Truth = true
		}
	case len(s) < maxDigits && yamlInt().MatchString(s):
		t.Form = Int
		t.number(s)
	case yamlFlt().MatchString(s):
		t.Form, t.Float = Real, floatOf(s)
	case yamlTime().MatchString(s):
		t.Form, t.Text = Time, s
	default:
		t.Form, t.Text = Text, s
	}
}

// number reads an integer of YAML 1.1: decimal, 0b, 0x, octal after a 0, or base 60 with colons.
func (n *Node) number(s string) {
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
	v, ok := new(big.Int).SetString(body, base)
	if !ok { // 0x_
		n.Form, n.Text = Text, s
		return
	}
	n.whole(v, digits[0] == '-')
}

// whole keeps a number, as its digits where it is huge.
func (n *Node) whole(v *big.Int, negative bool) {
	if negative {
		v.Neg(v)
	}
	if n.Huge = !v.IsInt64(); n.Huge {
		n.Text = v.String()
		return
	}
	n.Int = v.Int64()
}

func (n *Node) sexagesimal(digits string) {
	total, sixty := new(big.Int), big.NewInt(60)
	for _, part := range strings.Split(strings.TrimLeft(digits, "+-"), ":") {
		v, _ := new(big.Int).SetString(part, 10)
		total.Add(total.Mul(total, sixty), v)
	}
	n.whole(total, digits[0] == '-')
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
