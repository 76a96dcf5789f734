package sim

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Rule is how a simulation schedules, by name.
type Rule string

var rules = []string{"fcfs"}

// Rules lists the names there are, the default first.
func Rules() []string { return rules }

// ParseRule finds a rule by its name.
func ParseRule(name string) (Rule, error) {
	for _, r := range rules {
		if r == name {
			return Rule(r), nil
		}
	}
	return "", core.Errorf(core.Invalid, "there is no rule %q; there are: %s", name, strings.Join(rules, ", "))
}
