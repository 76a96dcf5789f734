// Package ledger knows what every node has free, now and at later times. A Node has its capacity, its free Resources,
// the CPUs and GRES units by number, the reservations planned on it during a pass and the times at which its jobs end.
// A View says at which moment and under which conditions a search looks at nodes. The state checks each start against a
// Ledger of its own, so no resource is allocated twice.
package ledger
