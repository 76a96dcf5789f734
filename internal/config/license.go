package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

func (d *decoder) checkLicenses(c *Config) {
	seen := map[string]bool{}
	for i, text := range c.Licenses {
		path := fmt.Sprintf("licenses[%d]", i)
		l, err := parseLicense(text)
		if err != nil {
			d.at(path, "%v", err)
		} else if seen[l.Name] {
			d.at(path, "%s is listed twice", l.Name)
		}
		seen[l.Name] = true
	}
}

func parseLicense(text string) (core.License, error) {
	name, count, given := strings.Cut(text, ":")
	l := core.License{Name: name, Total: 1}
	var err error
	if given {
		l.Total, err = strconv.ParseInt(count, 10, 32)
	}
	if err != nil || l.Total < 0 || name == "" || strings.ContainsAny(name, ",|= \t") {
		return l, fmt.Errorf("%q is not name[:count]", text)
	}
	return l, nil
}

// CoreLicenses returns the licenses, by name. The Config has been checked.
func (c *Config) CoreLicenses() []core.License {
	var list []core.License
	for _, text := range c.Licenses {
		if l, err := parseLicense(text); err == nil {
			list = append(list, l)
		}
	}
	slices.SortFunc(list, func(a, b core.License) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
