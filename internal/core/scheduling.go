package core

import (
	"fmt"
	"strings"
)

// Rule says how a scheduling pass treats the jobs behind one that cannot start. The settings name it.
type Rule uint8

// The rules.
const (
	// RuleEASY reserves for the first job of each queue that cannot start; others start if they do not delay it.
	RuleEASY Rule = iota
	// RuleFCFS starts jobs in the order of the queue and nothing behind one that cannot.
	RuleFCFS
	// RuleEASYSJBF is RuleEASY, but those behind are tried shortest first.
	RuleEASYSJBF
	// RuleConservative reserves for every job, or as many of each queue as the settings say.
	RuleConservative
	// RuleSJFEASY is RuleEASY over queues that have the shortest first.
	RuleSJFEASY
)

var ruleNames = [...]string{"easy", "fcfs", "easy-sjbf", "conservative", "sjf-easy"}

// Rules lists the rules in the order in which messages do.
var Rules = []Rule{RuleEASY, RuleConservative, RuleFCFS, RuleEASYSJBF, RuleSJFEASY}

// String is the rule's name as users write it.
func (r Rule) String() string { return ruleNames[r] }

// ParseRule finds the rule of a name; none is RuleEASY.
func ParseRule(name string) (Rule, bool) {
	for i, n := range ruleNames {
		if n == name {
			return Rule(i), true
		}
	}
	return RuleEASY, name == ""
}

// MarshalText gives the rule's name.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rule's name.
func (r *Rule) UnmarshalText(text []byte) (err error) {
	*r, err = parseName(string(text), "scheduling rule", ParseRule)
	return err
}

// AllocUnit is the smallest number of CPUs of a node that is allocated. The settings name it.
type AllocUnit uint8

// The units. Two jobs share a core only with UnitCPU.
const (
	UnitCore   AllocUnit = iota // whole cores, with all their threads, as Slurm's CR_Core
	UnitCPU                     // single CPUs, as CR_CPU on nodes that tell nothing of cores
	UnitSocket                  // whole sockets, as CR_Socket
)

var allocUnitNames = [...]string{"core", "cpu", "socket"}

// String is the unit's name as users write it.
func (u AllocUnit) String() string { return allocUnitNames[u] }

// ParseAllocUnit finds the unit of a name, in any case; none is UnitCore.
func ParseAllocUnit(name string) (AllocUnit, bool) {
	for i, n := range allocUnitNames {
		if strings.EqualFold(n, name) {
			return AllocUnit(i), true
		}
	}
	return UnitCore, name == ""
}

// MarshalText gives the unit's name.
func (u AllocUnit) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads a unit's name.
func (u *AllocUnit) UnmarshalText(text []byte) (err error) {
	*u, err = parseName(string(text), "unit of allocation", ParseAllocUnit)
	return err
}

func parseName[T any](name, what string, parse func(string) (T, bool)) (T, error) {
	v, ok := parse(name)
	if !ok {
		return v, fmt.Errorf("there is no %s %q", what, name)
	}
	return v, nil
}
