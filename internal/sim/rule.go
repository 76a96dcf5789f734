package sim

import (
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Rule is how a simulation schedules.
type Rule = core.Rule

// Rules lists the names of the rules, the default first.
func Rules() []string {
	var names []string
	for _, r := range []Rule{
		core.RuleEASY, core.RuleFCFS, core.RuleEASYSJBF, core.RuleConservative,
		core.RuleSJFEASY,
	} {
		names = append(names, r.String())
	}
	return names
}

// ParseRule finds a rule by its name.
func ParseRule(name string) (Rule, error) {
	if r, ok := core.ParseRule(name); ok && name != "" {
		return r, nil
	}
	return 0, core.Errorf(core.Invalid, "there is no rule %q; there are: %s", name, strings.Join(Rules(), ", "))
}
