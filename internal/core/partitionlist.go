package core

import (
	"iter"
	"slices"
	"strings"
)

// PartitionList is the partitions a job may start in, in the order they were written: the first that can takes it. It
// is written with commas. The names are not checked here: admission knows which partitions there are.
type PartitionList struct {
	_     [0]func()        // two of them are compared by Equal
	text  string           // as it was written
	names *[]PartitionName // nil where there is no comma: most jobs name one, and it costs nothing
}

// ParsePartitions reads a list of partitions.
func ParsePartitions(text string) PartitionList {
	l := PartitionList{text: text}
	if strings.IndexByte(text, ',') >= 0 {
		names := make([]PartitionName, 0, 1+strings.Count(text, ","))
		for name := range strings.SplitSeq(text, ",") {
			names = append(names, PartitionName(name))
		}
		l.names = &names
	}
	return l
}

// ListPartitions makes a list of names.
func ListPartitions(names ...PartitionName) PartitionList {
	if len(names) == 1 {
		return PartitionList{text: string(names[0])}
	}
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	list := slices.Clone(names) // names itself stays on the stack: one name costs no allocation
	return PartitionList{text: strings.Join(texts, ","), names: &list}
}

// IsZero reports whether no partition is named.
func (l PartitionList) IsZero() bool { return l.text == "" }

// String is the list as it was written.
func (l PartitionList) String() string { return l.text }

// Equal reports whether both are written the same.
func (l PartitionList) Equal(o PartitionList) bool { return l.text == o.text }

// Len is the number of partitions; 1 of an empty list, as All gives.
func (l PartitionList) Len() int {
	if l.names != nil {
		return len(*l.names)
	}
	return 1
}

// First is the first partition.
func (l PartitionList) First() PartitionName {
	if l.names != nil {
		return (*l.names)[0]
	}
	return PartitionName(l.text)
}

// All gives each partition in turn; one empty name of an empty list.
func (l PartitionList) All() iter.Seq[PartitionName] {
	return func(yield func(PartitionName) bool) {
		if l.names == nil {
			yield(PartitionName(l.text))
			return
		}
		for _, n := range *l.names {
			if !yield(n) {
				return
			}
		}
	}
}

// Has reports whether a partition is in the list.
func (l PartitionList) Has(name PartitionName) bool {
	if l.names == nil {
		return l.text == string(name)
	}
	return slices.Contains(*l.names, name)
}

// MarshalText gives the list as it was written.
func (l PartitionList) MarshalText() ([]byte, error) { return []byte(l.text), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *PartitionList) UnmarshalText(text []byte) error {
	*l = ParsePartitions(string(text))
	return nil
}
