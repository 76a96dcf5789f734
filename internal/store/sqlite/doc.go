// Package sqlite is the embedded engine of the store: one file, one writer connection, a few readers.
//
// Every commit is one write-ahead-log transaction with one fdatasync (synchronous=FULL). The writer never checkpoints:
// a goroutine of its own copies the log into the database when it has grown, and only for the last few pages, so that
// the log can begin anew, does it keep the writer waiting.
//
// It speaks to the library below modernc.org/sqlite's database/sql driver. The driver looks every placeholder up by name
// among all arguments, so a statement of many rows costs the square of its arguments, and it copies every value to the
// C heap first; together more than half of a commit. What is needed here is small: see conn.go.
package sqlite
