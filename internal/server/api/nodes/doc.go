// Package nodes answers the routes of what jobs run on: nodes, partitions, licenses, advance reservations, fleets,
// and the last plan.
package nodes
