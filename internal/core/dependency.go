package core

import "bireme.dev/bireme/internal/core/grammar"

// Dependency is what --dependency asks for: which jobs a job waits for, and for what of them.
type Dependency struct{ parsed[*Needs] }

// ParseDependency parses a dependency. What has a fault is returned with it.
func ParseDependency(text string) (Dependency, error) {
	p, err := parseText(text, parseNeeds)
	return Dependency{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (d *Dependency) UnmarshalText(text []byte) error {
	d.parsed, _ = parseText(string(text), parseNeeds)
	return nil
}

// Equal reports whether both have the same text.
func (d Dependency) Equal(o Dependency) bool { return d.String() == o.String() }

// Needs is what the dependency waits for, nothing of it fulfilled; nil if there is none, or it has a fault. It is for
// reading only.
func (d Dependency) Needs() *Needs { return d.get() }

func parseNeeds(text string) (*Needs, error) {
	d, err := grammar.ParseDependency(text)
	if err != nil {
		return nil, err
	}
	n := &Needs{Any: d.Any, Left: make([]Need, len(d.Items))}
	for i, x := range d.Items {
		n.Left[i] = Need{Kind: NeedKind(x.Kind), Job: JobID(x.Job), Task: x.Task, Delay: Seconds(x.Delay)}
	}
	return n, nil
}
