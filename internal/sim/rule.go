package sim

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sched"
)

// Rule is how a simulation schedules.
type Rule = sched.Rule

// Rules lists the names of the rules, the default first.
func Rules() []string {
	var names []string
	for _, r := range []Rule{
		sched.RuleEASY, sched.RuleFCFS, sched.RuleEASYSJBF, sched.RuleConservative,
		sched.RuleSJFEASY,
	} {
		names = append(names, r.String())
	}
	return names
}

// ParseRule finds a rule by its name.
func ParseRule(name string) (Rule, error) {
	if r, ok := sched.ParseRule(name); ok {
		return r, nil
	}
	return 0, core.Errorf(core.Invalid, "there is no rule %q; there are: %s", name, strings.Join(Rules(), ", "))
}
