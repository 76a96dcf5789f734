package core

// parsed is a text in one of the small languages users write, with what it means. It is parsed where it comes in, once;
// whoever copies it shares the result. It is stored and sent as its text. A text that does not parse is kept with its
// fault: a stored record with one can be shown and canceled, and what the text asked for is never granted. The zero
// value is an absent text.
type parsed[V any] struct {
	_ [0]func() // two of them are compared by their texts
	p *parsedText[V]
}

type parsedText[V any] struct {
	text  string
	fault error
	value V // zero where there is a fault
}

// parseText parses a text. One with a fault is kept all the same; an empty one gives the zero value.
func parseText[V any](text string, parse func(string) (V, error)) (parsed[V], error) {
	v, err := parse(text)
	switch {
	case text == "":
		return parsed[V]{}, err
	case err != nil:
		return parsed[V]{p: &parsedText[V]{text: text, fault: err}}, err
	}
	return parsed[V]{p: &parsedText[V]{text: text, value: v}}, nil
}

// IsZero reports whether there is no text.
func (t parsed[V]) IsZero() bool { return t.p == nil }

// String is the text as it was written.
func (t parsed[V]) String() string {
	if t.p == nil {
		return ""
	}
	return t.p.text
}

// Fault says why the text does not parse; nil if it does, or there is none.
func (t parsed[V]) Fault() error {
	if t.p == nil {
		return nil
	}
	return t.p.fault
}

// MarshalText gives the text as it was written.
func (t parsed[V]) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// get is what the text means: the zero V where there is none or it has a fault.
func (t parsed[V]) get() (v V) {
	if t.p != nil {
		v = t.p.value
	}
	return v
}
