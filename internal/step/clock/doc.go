// Package clock has the keeper's clock, which goes on while the machine sleeps, and deadlines on it.
package clock
