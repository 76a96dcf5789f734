package core

import "bireme.dev/bireme/internal/core/taskset"

// ArraySpec is the task indices that a job array was submitted with: 0-15:4,20.
type ArraySpec struct{ parsed[taskset.Set] }

// ParseArray parses the indices of an array. What has a fault is returned with it.
func ParseArray(text string) (ArraySpec, error) {
	p, err := parseText(text, parseArray)
	return ArraySpec{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (a *ArraySpec) UnmarshalText(text []byte) error {
	a.parsed, _ = parseText(string(text), parseArray)
	return nil
}

// Equal reports whether both have the same text.
func (a ArraySpec) Equal(o ArraySpec) bool { return a.String() == o.String() }

// Tasks are the indices; none of a faulty text.
func (a ArraySpec) Tasks() taskset.Set { return a.get() }

func parseArray(text string) (taskset.Set, error) {
	if text == "" {
		return taskset.Set{}, nil
	}
	return taskset.Parse(text)
}
