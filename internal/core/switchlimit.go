package core

import "bireme.dev/bireme/internal/core/grammar"

// SwitchLimit is what --switches asks for: the most leaf switches a job's nodes may be on, and how long it waits for
// so few.
type SwitchLimit struct{ parsed[switchLimit] }

type switchLimit struct {
	count int32
	wait  Seconds
}

// ParseSwitchLimit parses a limit of switches. What has a fault is returned with it.
func ParseSwitchLimit(text string) (SwitchLimit, error) {
	p, err := parseText(text, parseSwitchLimit)
	return SwitchLimit{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (l *SwitchLimit) UnmarshalText(text []byte) error {
	l.parsed, _ = parseText(string(text), parseSwitchLimit)
	return nil
}

// Equal reports whether both have the same text.
func (l SwitchLimit) Equal(o SwitchLimit) bool { return l.String() == o.String() }

// Count is the most switches; 0 if there is no limit, or it has a fault.
func (l SwitchLimit) Count() int32 { return l.get().count }

// Wait is how long the job waits for so few switches; Forever if the text does not say.
func (l SwitchLimit) Wait() Seconds { return l.get().wait }

func parseSwitchLimit(text string) (l switchLimit, err error) {
	count, wait, err := grammar.ParseSwitches(text)
	if wait == grammar.Unlimited {
		return switchLimit{count, Forever}, err
	}
	return switchLimit{count, Seconds(wait)}, err
}
