package dstack

import (
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The scalars below follow PyYAML's YAML 1.1 rules where they differ from the 1.2 rules of our parser, because dstack's
// files are written for the former: yes, no, on and off are booleans, 1_000 is a number.

// maxAliases bounds how often aliases are followed in one file, so that a small file cannot unfold into a large one.
const maxAliases = 1000

// entry is one key of a mapping.
type entry struct {
	key   *yaml.Node
	value *yaml.Node
}

// resolve follows an alias; a chain that never ends gives nil.
func (r *reader) resolve(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		if r.aliases++; r.aliases > maxAliases {
			return nil
		}
		n = n.Alias
	}
	return n
}

// entries lists a mapping's keys in file order, those merged with << after its own. A key written twice is a fault.
func (r *reader) entries(n *yaml.Node, path string) []entry {
	var own, merged []entry
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], r.resolve(n.Content[i+1])
		if v == nil {
			r.add(k, path, "the file has too many YAML aliases")
			continue
		}
		if k.Kind == yaml.ScalarNode && k.Tag == "!!merge" {
			merged = append(merged, r.merge(v, path)...)
			continue
		}
		if k.Kind != yaml.ScalarNode {
			r.add(k, path, "a key must be plain text")
			continue
		}
		if seen[k.Value] {
			r.add(k, join(path, k.Value), "the key appears twice")
			continue
		}
		seen[k.Value] = true
		own = append(own, entry{k, v})
	}
	for _, e := range merged {
		if !seen[e.key.Value] {
			seen[e.key.Value] = true
			own = append(own, e)
		}
	}
	return own
}

// merge gives the entries that `<<: v` brings.
func (r *reader) merge(v *yaml.Node, path string) []entry {
	if r.aliases++; r.aliases > maxAliases {
		r.add(v, path, "the file has too many YAML aliases")
		return nil
	}
	switch v.Kind {
	case yaml.MappingNode:
		return r.entries(v, path)
	case yaml.SequenceNode:
		var all []entry
		for _, item := range v.Content {
			if item = r.resolve(item); item != nil && item.Kind == yaml.MappingNode {
				all = append(all, r.merge(item, path)...)
			}
		}
		return all
	}
	r.add(v, path, "<< takes a mapping")
	return nil
}

// items lists a sequence; what is not one is a fault.
func (r *reader) items(n *yaml.Node, path string) ([]*yaml.Node, bool) {
	if n.Kind != yaml.SequenceNode {
		r.add(n, path, "must be a list, not %s", kindOf(n))
		return nil, false
	}
	list := make([]*yaml.Node, 0, len(n.Content))
	for _, item := range n.Content {
		item = r.resolve(item)
		if item == nil {
			r.add(n, path, "the file has too many YAML aliases")
			return nil, false
		}
		list = append(list, item)
	}
	return list, true
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// boolean reads a boolean: the YAML 1.1 words, and as text or number what dstack coerces.
func boolean(n *yaml.Node) (value, ok bool) {
	if n.Kind != yaml.ScalarNode {
		return false, false
	}
	switch strings.ToLower(n.Value) {
	case "true", "yes", "on", "y", "t", "1":
		return true, true
	case "false", "no", "off", "n", "f", "0":
		return false, true
	}
	return false, false
}

// plainBoolean reports whether YAML 1.1 reads n as a boolean, although it may have been meant as a word.
func plainBoolean(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode ||
		n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return false
	}
	switch n.Value {
	case "true", "True", "TRUE", "false", "False", "FALSE", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON",
		"off", "Off", "OFF":
		return true
	}
	return false
}

// text reads a string; numbers are taken as they are written, booleans and null are faults.
func (r *reader) text(n *yaml.Node, path string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.add(n, path, "must be text, not %s", kindOf(n))
	case isNull(n):
		r.add(n, path, "must be text, not empty")
	case plainBoolean(n):
		r.add(n, path, "%s is a boolean in YAML; write %q in quotes", n.Value, n.Value)
	case strings.ContainsRune(n.Value, 0):
		r.add(n, path, "must not contain a NUL byte")
	default:
		return n.Value, true
	}
	return "", false
}

// integer reads a whole number: 5, 5.0, "5", 1_000.
func integer(n *yaml.Node) (int64, bool) {
	if n.Kind != yaml.ScalarNode || plainBoolean(n) {
		return 0, false
	}
	return wholeNumber(n.Value)
}

func wholeNumber(s string) (int64, bool) {
	s = strings.ReplaceAll(strings.TrimSpace(s), "_", "")
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return v, true
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 &&
		strings.Contains(s, ".") {
		return int64(f), true
	}
	return 0, false
}

// kindOf names what n is, for messages.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if isNull(n) {
			return "empty"
		}
		return strconv.Quote(clip(n.Value))
	}
	return "this"
}

// clip shortens a value for a message.
func clip(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
