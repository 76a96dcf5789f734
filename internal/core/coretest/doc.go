// Package coretest builds core's nouns for tests: coretest.Job().CPUs(4).Nodes(2).Build() instead of twenty fields.
//
// Every builder starts with something valid and small (one task on one CPU, user "alice"), so that a test names only
// what it is about. Nothing outside tests imports it.
package coretest
