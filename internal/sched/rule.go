package sched

import (
	"math"

	"bireme.dev/bireme/internal/core"
)

// reservationsPerQueue returns how many jobs of each queue that cannot start get a reservation.
func (c *Config) reservationsPerQueue() int {
	switch {
	case c.Rule == core.RuleFCFS:
		return 1
	case c.Reservations > 0:
		return int(c.Reservations)
	case c.Rule == core.RuleConservative:
		return math.MaxInt
	}
	return 1
}
