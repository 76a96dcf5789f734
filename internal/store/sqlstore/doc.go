// Package sqlstore is the store in SQL, once for both engines: the text of every statement, one file per noun, and
// the meaning of store.Store over a small seam (Engine) that internal/store/sqlite and internal/store/postgres fill
// in.
//
// The text keeps to what both understand: $1 placeholders first used in numeric order, ON CONFLICT, RETURNING, the
// types BIGINT, TEXT, BOOLEAN and BLOB (BYTEA in PostgreSQL), times in microseconds UTC. What we filter by is a
// column; the rest of a record is a JSON document (package doc) with a version in front, read through upgrade.
//
// A commit is a Batch: rows per table, written by INSERT … ON CONFLICT with as many rows a statement as the engine
// likes, behind one fence (see fenceText) that moves the event sequence and fails when the epoch is not the leader's
// any more.
package sqlstore
