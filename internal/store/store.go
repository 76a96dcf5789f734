package store

import (
	"context"
	"errors"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Errors a Store returns, for errors.Is.
var (
	// ErrStale: somebody else leads now. The engine must stop.
	ErrStale = errors.New("store: stale epoch")
	// ErrGone: the events asked for have been purged.
	ErrGone = errors.New("store: events purged")
	// ErrHeld: another holder has an unexpired lease.
	ErrHeld = errors.New("store: lease held by another")
	// ErrNotFound: no such row.
	ErrNotFound = errors.New("store: not found")
)

// Store is the whole of what must survive. Its meaning is stated by storetest.Run.
type Store interface {
	// Lead takes or extends leadership for ttl. The epoch grows by one each time the holder changes or takes it anew
	// (renew == 0); with renew == the current epoch it only extends the lease. ErrHeld if another's lease has not ended,
	// ErrStale if renew is no longer the epoch.
	Lead(ctx context.Context, holder string, ttl time.Duration, renew int64, now core.Time) (epoch int64, err error)

	// Load reads the live part: every job that is live with its spec, nodes, users, projects, tokens, open runs, recent
	// submit keys, counters.
	Load(ctx context.Context) (*Image, error)

	// Commit writes c in one transaction under epoch and is durable when it returns. Any error but ErrStale leaves the
	// outcome unknown: the caller must Load again.
	Commit(ctx context.Context, epoch int64, c *core.Changes) error

	// Probe tells whether a write would work now (disk full, database away), without changing anything that is read.
	Probe(ctx context.Context, epoch int64) error

	Blob(ctx context.Context, h core.Hash) ([]byte, error)
	// Jobs answers accounting and lookups of jobs that have left memory, by index, ascending id; specs attached.
	Jobs(ctx context.Context, q JobQuery) ([]*core.Job, error)
	Steps(ctx context.Context, jobs []core.JobID) ([]*core.Step, error)
	// Events after seq, at most limit; ErrGone if some of them were purged.
	Events(ctx context.Context, after int64, limit int) ([]core.Event, error)
	// Runs finds runs, ended ones included: by project (empty: all), name (empty: all), newest first.
	Runs(ctx context.Context, project core.ProjectName, name string, limit int) ([]*core.Run, error)
	SubmitKey(ctx context.Context, key string) (core.JobID, error)

	// Sealed keeps small secrets (the CA, sealed by the caller) outside the engine's state.
	Sealed(ctx context.Context, name string) ([]byte, error)
	PutSealed(ctx context.Context, name string, data []byte) error // keeps the first: returns nil and changes nothing if it exists

	// Purge removes a bounded batch of what is past its time; more tells that there is more to do.
	Purge(ctx context.Context, epoch int64, keep Retention, now core.Time) (removed int, more bool, err error)
	Close() error
}

// Image is the live part of the store.
type Image struct {
	Seq      int64 // of the last event
	NextJob  core.JobID
	NextNode int64
	Now      core.Time // of the last batch: the engine's time never goes back
	Jobs     []*core.Job
	Steps    []*core.Step // of live jobs
	Nodes    []*core.Node
	Users    []*core.User
	Projects []*core.Project
	Tokens   []*core.Token
	Runs     []*core.Run // not ended
	Keys     []core.SubmitKey
}

// JobQuery selects jobs. Zero fields do not restrict.
type JobQuery struct {
	IDs        []core.JobID // jobs, and all tasks of arrays with these ids
	Users      []core.UserName
	Projects   []core.ProjectName
	States     []core.JobState
	Partitions []core.PartitionName
	Names      []string
	Nodes      []core.NodeName
	// A job overlaps [Since, Until) if it was submitted before Until and had not ended at Since.
	Since, Until core.Time
	After        core.JobID // page: ids above this
	Limit        int        // 0: 10,000
}

// Retention says how long things stay. Zero means for ever.
type Retention struct {
	Events    time.Duration
	MaxEvents int64
	Jobs      time.Duration
	Keys      time.Duration
}
