package sched

import (
	"testing"
)

// BenchmarkPolicyChange is a new set of limits over all that runs and waits.
func BenchmarkPolicyChange(b *testing.B) {
	l := newLoad(b, 10_000, 100_000)
	p := l.planner()
	p.Pass(loadNow)
	for b.Loop() {
		again := *l.policy.Rules
		p.Apply(Changes{Policy: &Policy{Rules: &again}})
	}
}

// BenchmarkWhy tells why every one of 100,000 jobs waits.
func BenchmarkWhy(b *testing.B) {
	l := newLoad(b, 10_000, 100_000)
	plan := l.planner().Pass(loadNow)
	for b.Loop() {
		for _, j := range l.Pending {
			plan.Reason(j)
		}
	}
}
