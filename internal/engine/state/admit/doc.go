// Package admit decides which jobs are let in, and completes what they ask for with defaults.
package admit
