package alloc

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// LicenseRequest is the licenses a job asks for: all of List, or with Any one of them.
type LicenseRequest struct {
	List []core.License
	Any  bool
}

// ParseLicenses parses a request that admission has checked. One that cannot be parsed is a license that nobody has.
func ParseLicenses(text string) *LicenseRequest {
	if text == "" {
		return nil
	}
	list, any, err := grammar.ParseLicenses(text)
	if err != nil {
		return &LicenseRequest{List: []core.License{{Name: text, Total: 1}}}
	}
	ask := &LicenseRequest{Any: any}
	for _, l := range list {
		ask.List = append(ask.List, core.License{Name: l.Name, Total: l.Count})
	}
	return ask
}

// LicenseCount is how many of a license a list has.
func LicenseCount(list []core.License, name string) int64 {
	for i := range list {
		if list[i].Name == name {
			return list[i].Total
		}
	}
	return 0
}
