package core

import (
	"fmt"

	"bireme.dev/bireme/internal/core/hostlist"
)

// Hostlist is a list of nodes as users write it, n[1-4,7]. It is checked when it is parsed and stays folded: expanded
// it may be thousands of names.
type Hostlist struct{ parsed[int] }

// ParseHostlist parses a list of nodes. What has a fault is returned with it.
func ParseHostlist(text string) (Hostlist, error) {
	p, err := parseText(text, countHosts)
	return Hostlist{p}, err
}

// ListNodes makes the list of some nodes, in their order.
func ListNodes[T ~string](names ...T) Hostlist {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	l, _ := ParseHostlist(hostlist.Fold(texts))
	return l
}

// UnmarshalText keeps the text and its fault, if it has one.
func (l *Hostlist) UnmarshalText(text []byte) error {
	l.parsed, _ = parseText(string(text), countHosts)
	return nil
}

// Equal reports whether both have the same text.
func (l Hostlist) Equal(o Hostlist) bool { return l.String() == o.String() }

// Len is how many names the list has, those that come again counted again; 0 of a faulty one.
func (l Hostlist) Len() int { return l.get() }

// Names expands the list, in its order. A faulty list has none.
func (l Hostlist) Names() []NodeName {
	if l.Len() == 0 {
		return nil
	}
	texts, err := hostlist.Expand(l.String(), l.Len())
	Assert(err == nil, "a list of nodes that was counted expands")
	names := make([]NodeName, len(texts))
	for i, t := range texts {
		names[i] = NodeName(t)
	}
	return names
}

func countHosts(text string) (int, error) {
	n, err := hostlist.Count(text, hostlist.DefaultMax)
	if err == nil && n == 0 && text != "" {
		err = fmt.Errorf("node list %.200q names no node", text)
	}
	return n, err
}
