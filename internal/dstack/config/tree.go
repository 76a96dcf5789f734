package config

import (
	"encoding/json"
	"math"
	"strconv"
)

// Bounds of what is read. A file that is larger, deeper or unfolds to more than this is refused.
const (
	MaxSize  = 1 << 20
	maxDepth = 64
	maxNodes = 100_000
)

// form is what a value is, in YAML's and JSON's common terms.
type form uint8

const (
	isNull form = iota
	isBool
	isInt
	isFloat
	isText
	isTime // a YAML timestamp, which dstack takes nowhere
	isList
	isMapping
)

// node is a value with its place. Lines and columns count from 1.
type node struct {
	form  form
	line  int
	col   int
	text  string // of isText and isTime; the digits of an isInt that is huge
	raw   string // a plain scalar of YAML as it stands in the file
	truth bool
	int   int64
	huge  bool // an isInt that int64 cannot hold
	float float64
	items []*node
	keys  []entry
}

// entry is one key of a mapping.
type entry struct{ key, value *node }

// get finds a key's value.
func (n *node) get(key string) *node {
	for i := range n.keys {
		if k := n.keys[i].key; k.form == isText && k.text == key {
			return n.keys[i].value
		}
	}
	return nil
}

// keyNode finds a key itself.
func (n *node) keyNode(key string) *node {
	for i := range n.keys {
		if k := n.keys[i].key; k.form == isText && k.text == key {
			return k
		}
	}
	return n
}

// set adds a key or replaces its value, as a later key of the same name does.
func (n *node) set(key, value *node) {
	for i := range n.keys {
		if k := n.keys[i].key; k.form == key.form && k.plain() == key.plain() {
			n.keys[i].value = value
			n.keys[i].key = key
			return
		}
	}
	n.keys = append(n.keys, entry{key, value})
}

// plain is a scalar as Python prints it: what a number becomes where a text is due.
func (n *node) plain() string {
	switch n.form {
	case isNull:
		return "None"
	case isBool:
		if n.truth {
			return "True"
		}
		return "False"
	case isInt:
		if n.huge {
			return n.text
		}
		return strconv.FormatInt(n.int, 10)
	case isFloat:
		return pythonFloat(n.float)
	case isText, isTime:
		return n.text
	}
	return ""
}

func pythonFloat(v float64) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	return formatFloat(v)
}

// describe names a value in a message.
func (n *node) describe() string {
	switch n.form {
	case isNull:
		return "nothing"
	case isBool:
		return strconv.FormatBool(n.truth)
	case isInt, isFloat:
		return clip(n.plain())
	case isText:
		return quoted(n.text)
	case isTime:
		return "the date " + clip(n.text)
	case isList:
		return "a list"
	}
	return "a mapping"
}

// native gives the value for the `input` of an error's detail.
func (n *node) native() any {
	if n == nil {
		return nil
	}
	switch n.form {
	case isNull:
		return nil
	case isBool:
		return n.truth
	case isInt:
		if n.huge {
			return json.Number(n.text)
		}
		return n.int
	case isFloat:
		return Float(n.float)
	case isText, isTime:
		return n.text
	case isList:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.native()
		}
		return list
	}
	t := object(n.keys)
	return t
}

// object writes the keys of a mapping in their order.
type object []entry

func (o object) MarshalJSON() ([]byte, error) {
	return writeObject(len(o), func(i int) (string, any) { return o[i].key.plain(), o[i].value.native() })
}

// clip cuts a text that is too long for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func quoted(s string) string { return strconv.Quote(clip(s)) }
