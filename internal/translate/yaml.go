package translate

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/dstack/config/tree"
)

// keys is a mapping that keeps the order its keys were set in.
type keys struct {
	names  []string
	values map[string]any
}

func (k *keys) set(name string, value any) {
	if k.values == nil {
		k.values = map[string]any{}
	}
	if _, there := k.values[name]; !there {
		k.names = append(k.names, name)
	}
	k.values[name] = value
}

func (k *keys) drop(name string) {
	if _, there := k.values[name]; !there {
		return
	}
	delete(k.values, name)
	for i, n := range k.names {
		if n == name {
			k.names = append(k.names[:i:i], k.names[i+1:]...)
			return
		}
	}
}

// node makes YAML of a value: *keys, []any, *yaml.Node, or a scalar. Texts of several lines are literal blocks.
func node(v any) *yaml.Node {
	switch v := v.(type) {
	case *yaml.Node:
		return v
	case *keys:
		m := &yaml.Node{Kind: yaml.MappingNode}
		for _, n := range v.names {
			m.Content = append(m.Content, node(n), node(v.values[n]))
		}
		return m
	case []any:
		l := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v {
			l.Content = append(l.Content, node(e))
		}
		return l
	case string:
		n := &yaml.Node{}
		n.SetString(v)
		if t, err := tree.ParseYAML([]byte(v)); n.Style == 0 && err == nil && t.Form != tree.Text &&
			t.Form != tree.Mapping && t.Form != tree.List {
			n.Style = yaml.DoubleQuotedStyle // YAML 1.1 would read a date, a number or a truth
		}
		return n
	default:
		n := &yaml.Node{}
		n.Value, n.Kind = fmt.Sprint(v), yaml.ScalarNode
		return n
	}
}

// write encodes a mapping, with a blank line before each key that is a block.
func write(k *keys) (string, error) {
	var b strings.Builder
	for i, name := range k.names {
		var part bytes.Buffer
		e := yaml.NewEncoder(&part)
		e.SetIndent(2)
		one := &keys{}
		one.set(name, k.values[name])
		if err := e.Encode(node(one)); err != nil {
			return "", err
		}
		if err := e.Close(); err != nil {
			return "", err
		}
		if i > 0 && bytes.Count(part.Bytes(), []byte("\n")) > 1 {
			b.WriteString("\n")
		}
		b.Write(part.Bytes())
	}
	return b.String(), nil
}

// plainCopy copies a node without aliases and comments, so that it can stand alone.
func plainCopy(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	out := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Value: n.Value, Style: n.Style}
	for _, c := range n.Content {
		out.Content = append(out.Content, plainCopy(c))
	}
	return out
}

// top gives the keys of a document as they are written; nil where it is no mapping.
func top(src []byte) *keys {
	var doc yaml.Node
	if yaml.Unmarshal(src, &doc) != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	out := &keys{}
	m := doc.Content[0]
	for i := 0; i+1 < len(m.Content); i += 2 {
		out.set(m.Content[i].Value, plainCopy(m.Content[i+1]))
	}
	return out
}
