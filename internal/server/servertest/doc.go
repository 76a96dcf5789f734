// Package servertest runs a real server on SQLite in a temporary directory, with agents that are fakes speaking the
// real wire over real TLS, for tests of everything that stands between a caller and a node.
package servertest
