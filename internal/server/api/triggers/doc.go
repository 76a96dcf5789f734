// Package triggers lists, sets and clears triggers.
package triggers
