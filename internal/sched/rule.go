package sched

import "math"

// Rule says how a pass treats the jobs behind one that cannot start.
type Rule uint8

// The rules.
const (
	// RuleEASY reserves for the first job of each queue that cannot start; others start if they do not delay it.
	RuleEASY Rule = iota
	// RuleFCFS starts jobs in the order of the queue and nothing behind one that cannot.
	RuleFCFS
	// RuleEASYSJBF is RuleEASY, but those behind are tried shortest first.
	RuleEASYSJBF
	// RuleConservative reserves for every job, or as many of each queue as Config.Reservations says.
	RuleConservative
	// RuleSJFEASY is RuleEASY over queues that have the shortest first.
	RuleSJFEASY
)

var ruleNames = [...]string{"easy", "fcfs", "easy-sjbf", "conservative", "sjf-easy"}

// String returns the rule's name as users write it.
func (r Rule) String() string { return ruleNames[r] }

// ParseRule returns the rule of a name, and false if there is none.
func ParseRule(name string) (Rule, bool) {
	for i, n := range ruleNames {
		if n == name {
			return Rule(i), true
		}
	}
	return 0, false
}

// reservationsPerQueue returns how many jobs of each queue that cannot start get a reservation.
func (c *Config) reservationsPerQueue() int {
	switch {
	case c.Rule == RuleFCFS:
		return 1
	case c.Reservations > 0:
		return int(c.Reservations)
	case c.Rule == RuleConservative:
		return math.MaxInt
	}
	return 1
}
