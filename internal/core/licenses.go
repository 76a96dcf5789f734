package core

import "bireme.dev/bireme/internal/core/grammar"

// Licenses is what --licenses asks for.
type Licenses struct{ parsed[*LicenseRequest] }

// LicenseRequest is the licenses a job asks for: all of List, or with Any one of them.
type LicenseRequest struct {
	List []License
	Any  bool
}

// maxLicenseText bounds what is parsed of one request.
const maxLicenseText = 64 << 10

// ParseLicenses parses a request for licenses. What has a fault is returned with it.
func ParseLicenses(text string) (Licenses, error) {
	p, err := parseText(text, parseLicenses)
	return Licenses{p}, err
}

// UnmarshalText keeps the text and its fault, if it has one.
func (l *Licenses) UnmarshalText(text []byte) error {
	l.parsed, _ = parseText(string(text), parseLicenses)
	return nil
}

// Equal reports whether both have the same text.
func (l Licenses) Equal(o Licenses) bool { return l.String() == o.String() }

// Request is what is asked for; nil if nothing is. A faulty text asks for a license that nobody has. It is for reading
// only.
func (l Licenses) Request() *LicenseRequest {
	if l.Fault() != nil {
		return &LicenseRequest{List: []License{{Name: l.String(), Total: 1}}}
	}
	return l.get()
}

func parseLicenses(text string) (*LicenseRequest, error) {
	if len(text) > maxLicenseText {
		return nil, Errorf(Invalid, "licenses: %d bytes are too many", len(text))
	}
	list, any, err := grammar.ParseLicenses(text)
	if err != nil {
		return nil, err
	}
	r := &LicenseRequest{List: make([]License, len(list)), Any: any}
	for i, l := range list {
		r.List[i] = License{Name: l.Name, Total: l.Count}
	}
	return r, nil
}
