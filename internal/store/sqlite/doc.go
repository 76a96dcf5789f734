// Package sqlite is the embedded engine of the store: one file, one writer connection, a few readers.
//
// Every commit is one write-ahead-log transaction with one fsync (synchronous=FULL). The writer never checkpoints: a
// goroutine of its own copies the log into the database when it has grown, and keeps the writer waiting only for the
// last few pages, when the log has become so long that it must begin again. Another writes zeros ahead of the log's
// end, so that a commit writes over blocks that the file has (grower).
//
// It speaks to the library below modernc.org/sqlite's database/sql driver. The driver looks every $n up by name among
// all arguments of a statement, and copies every value to the C heap first. What is needed here is small: see
// conn.go.
package sqlite
