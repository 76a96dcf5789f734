package server

import (
	"testing"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
)

// TestSchedulingReachesThePlanner: what the settings say of scheduling is what the planner goes by, under every name.
func TestSchedulingReachesThePlanner(t *testing.T) {
	t.Parallel()
	for _, rule := range core.Rules {
		cfg := config.Default()
		cfg.Scheduling.Rule, cfg.Scheduling.Reservations = rule.String(), 7
		p := state.PlannerConfig(engineConfig(cfg).State)
		if p.Rule != rule || p.Reservations != 7 {
			t.Errorf("%s with 7 reservations is planned by %v with %d", rule, p.Rule, p.Reservations)
		}
	}
}
