// Package arch keeps the shape of the code by test: which room may import which,
// what the pure rooms must not touch, and what the programs must not link.
//
// docs/architecture.md §4 draws the rooms and arrows; rules_test.go holds the
// same table with the reason for each arrow, and a test that fails prints that
// reason. To add an arrow or a room, change the page and the table in one commit
// and write down why.
//
// Sizes are kept as a ratchet: a package has at most 5,000 lines without its tests,
// a type at most 40 methods, a line at most 120 columns. testdata/sizes.txt lists
// what is above that, with a number that only shrinks and a reason.
//
// The package has no code of its own, only tests. They parse the sources
// instead of building them, so they are fast, need no network and see files of
// every operating system and build tag alike. Only what a program links, which
// includes the standard library and other modules, is asked of `go list`.
package arch
