package sqlstore

import (
	"context"
	"errors"
)

// ErrFenced is what Engine.Apply returns when the fence matched no row: nothing was written.
var ErrFenced = errors.New("store: fenced")

// Engine is what a database must offer. All its errors are ready for the caller of the store: a full disk wraps
// store.ErrFull.
type Engine interface {
	// Read runs f over one unchanging view of the database.
	Read(ctx context.Context, f func(Tx) error) error
	// Write runs f in one transaction that excludes other writers of this process; an error of f rolls it back.
	Write(ctx context.Context, f func(Tx) error) error
	// Beside is Write that does not wait for the other writers of this process, where the database can do that: a lease
	// is renewed while a commit is slow.
	Beside(ctx context.Context, f func(Tx) error) error
	// Apply writes a batch in one transaction behind its fence. It is durable when Apply returns nil.
	Apply(ctx context.Context, b *Batch) error
	// Settle makes files hold no more than the database does, as far as this engine can: a log that was written into
	// it ends.
	Settle(ctx context.Context) error
	// Compact writes again what holds secrets, so that nothing of what was overwritten is left. It stops everybody
	// else for as long as that takes.
	Compact(ctx context.Context) error
	// Dialect gives the few words in which engines differ.
	Dialect() Dialect
	Close() error
}

// Dialect is where the common text is not enough.
type Dialect struct {
	Name  string // names the directory of migrations
	Clock string // expression: the database's own time in microseconds
	Lock  string // statement that keeps a second migrator out until the transaction ends; may be empty
	Table string // query: does the table $1 exist (count)
	Wipe  string // statement: what a transaction frees from now on is overwritten; may be empty
	Keep  string // statement: it is not any more
}

// Tx is a transaction. Arguments are int64, string, []byte or bool.
type Tx interface {
	Exec(text string, args ...any) (rows int64, err error)
	// Query calls each for every row, after filling dest: pointers to int64, string, []byte or bool. Bytes are valid
	// until each returns.
	Query(text string, args []any, dest []any, each func() error) error
}
