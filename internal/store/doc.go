// Package store keeps what was acknowledged: one transaction a batch, on SQLite or PostgreSQL, with one SQL text.
//
// Only the engine writes (Commit), and every commit names the epoch it leads under: a commit with a stale epoch changes
// nothing and returns ErrStale. Live queries are answered from the engine's memory; the store serves restart, history,
// blobs and events.
package store
