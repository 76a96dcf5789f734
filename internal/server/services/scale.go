package services

import (
	"fmt"
	"math"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/proxy"
)

// wanted is how many replicas the load of a service asks for, and why. now is of the engine's clock.
func wanted(g *core.ServiceGroup, load proxy.Load, since, now core.Time) (want int32, why string) {
	if g.Want == 0 && load.Waiting > 0 {
		return 1, fmt.Sprintf("%d requests wait", load.Waiting)
	}
	s := g.Scaling
	if s == nil {
		return min(max(g.Want, g.Min), g.Max), ""
	}
	want, why = byMetric(g.Want, s, load)
	want = min(max(want, g.Min), g.Max)
	last := max(g.Scaled, since)
	switch {
	case want > g.Want && now.Sub(last) < s.UpDelay.Duration(), want < g.Want && now.Sub(last) < s.DownDelay.Duration():
		return g.Want, ""
	case want == 0 && load.InFlight+load.Waiting > 0:
		return max(1, g.Min), why
	}
	return want, why
}

func byMetric(have int32, s *core.ServiceScaling, load proxy.Load) (int32, string) {
	ceil := func(x float64) int32 { return int32(min(math.Ceil(x), 1<<20)) }
	switch s.Metric {
	case core.ScaleQueue:
		n := load.InFlight + load.Waiting
		return ceil(float64(n) / s.Target), fmt.Sprintf("%d requests under way, %g a replica are meant", n, s.Target)
	case core.ScaleLatency:
		why := fmt.Sprintf("the slowest twentieth of requests takes %gs, %gs are meant", load.P95, s.Target)
		switch {
		case load.P95 > s.Target:
			return have + 1, why
		case load.RPS == 0:
			return 0, "no requests"
		case load.P95 < s.Target/2:
			return max(1, have-1), why
		}
		return have, why
	default:
		return ceil(load.RPS / s.Target), fmt.Sprintf("%.3g requests a second, %g a replica are meant", load.RPS, s.Target)
	}
}

// windowOf is the time whose load counts for a group.
func windowOf(g *core.ServiceGroup) time.Duration {
	if g.Scaling == nil {
		return time.Minute
	}
	return g.Scaling.Window.Duration()
}
