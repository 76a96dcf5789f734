// Package clock has the keeper's clock, which continues while the machine sleeps, and deadlines on it.
package clock
