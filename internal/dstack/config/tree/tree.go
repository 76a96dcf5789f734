package tree

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

// Form is what a value is, in YAML's and JSON's common terms.
type Form uint8

const (
	Null Form = iota
	Bool
	Int
	Real
	Text
	Time // a YAML timestamp, which dstack takes nowhere
	List
	Mapping
)

// Node is a value with its place. Lines and columns count from 1.
type Node struct {
	Form   Form
	Line   int
	Column int
	Text   string // of Text and Time; the digits of an Int that is huge
	Raw    string // a plain scalar of YAML as it stands in the file
	Truth  bool
	Int    int64
	Huge   bool // an Int that int64 cannot hold
	Float  float64
	Items  []*Node
	Keys   []Entry

	index map[string]int // of Keys, by id; nil for mappings made by hand
}

// Entry is one key of a mapping.
type Entry struct{ Key, Value *Node }

// Get finds a key's value.
func (n *Node) Get(key string) *Node {
	if n.index != nil {
		if i, there := n.index[string(rune('0'+Text))+key]; there {
			return n.Keys[i].Value
		}
		return nil
	}
	for i := range n.Keys {
		if k := n.Keys[i].Key; k.Form == Text && k.Text == key {
			return n.Keys[i].Value
		}
	}
	return nil
}

// set adds a key or replaces its value, as a later key of the same name does.
func (n *Node) set(key, value *Node) {
	id := key.id()
	if n.index == nil {
		n.index = map[string]int{}
	}
	if i, there := n.index[id]; there {
		n.Keys[i] = Entry{key, value}
		return
	}
	n.index[id] = len(n.Keys)
	n.Keys = append(n.Keys, Entry{key, value})
}

// id tells keys apart: the text 1 is another key than the number.
func (n *Node) id() string { return string(rune('0'+n.Form)) + n.Plain() }

// Plain is a scalar as Python prints it: what a number becomes where a text is due.
func (n *Node) Plain() string {
	switch n.Form {
	case Null:
		return "None"
	case Bool:
		if n.Truth {
			return "True"
		}
		return "False"
	case Int:
		if n.Huge {
			return n.Text
		}
		return strconv.FormatInt(n.Int, 10)
	case Real:
		return pythonFloat(n.Float)
	case Text, Time:
		return n.Text
	default: // has no text
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
	return FormatFloat(v)
}

// Describe names a value in a message.
func (n *Node) Describe() string {
	switch n.Form {
	case Null:
		return "nothing"
	case Bool:
		return strconv.FormatBool(n.Truth)
	case Int, Real:
		return Clip(n.Plain())
	case Text:
		return Quote(n.Text)
	case Time:
		return "the date " + Clip(n.Text)
	case List:
		return "a list"
	default: // has no text
	}
	return "a mapping"
}

// Native gives the value for the `input` of an error's detail.
func (n *Node) Native() any {
	if n == nil {
		return nil
	}
	switch n.Form {
	case Null:
		return nil
	case Bool:
		return n.Truth
	case Int:
		if n.Huge {
			return json.Number(n.Text)
		}
		return n.Int
	case Real:
		return real(n.Float)
	case Text, Time:
		return n.Text
	case List:
		list := make([]any, len(n.Items))
		for i, item := range n.Items {
			list[i] = item.Native()
		}
		return list
	default: // has no text
	}
	return object(n.Keys)
}

// real is a number that JSON writes with a point.
type real float64

func (f real) MarshalJSON() ([]byte, error) {
	if v := float64(f); math.IsInf(v, 0) || math.IsNaN(v) {
		return []byte("null"), nil
	}
	return []byte(FormatFloat(float64(f))), nil
}

// object writes the keys of a mapping in their order.
type object []Entry

func (o object) MarshalJSON() ([]byte, error) {
	return WriteObject(len(o), func(i int) (string, any) { return o[i].Key.Plain(), o[i].Value.Native() })
}

// Clip cuts a text that is too long for a message.
func Clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// Quote is Clip in quotes.
func Quote(s string) string { return strconv.Quote(Clip(s)) }
