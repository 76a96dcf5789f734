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
	// ErrFull: there is no room to write. Reads work; Probe tells when writes do.
	ErrFull = errors.New("store: no room left")
)

// Store is the whole of what must survive. Its meaning is stated by storetest.Run.
type Store interface {
	// Lead takes or extends leadership for ttl. The epoch grows each time the holder changes or takes it again
	// (renew == 0), by one or, with now == 0, to the present in microseconds; with renew == the current epoch it only
	// extends the lease. ErrHeld if another's lease has not ended, ErrStale if renew is no longer the epoch. With now
	// == 0 the database's clock counts, so that replicas need not agree on the time. Renewing for a ttl of 0 gives the
	// lease back.
	Lead(ctx context.Context, holder string, ttl time.Duration, renew int64, now core.Time) (epoch int64, err error)

	// Leader tells who leads and how far the state is.
	Leader(ctx context.Context) (Leader, error)
	// PutServer notes that a server is there, by the database's clock; a nil document takes it out. Any server may.
	PutServer(ctx context.Context, id string, doc []byte) error
	// Servers are those that were noted, by id.
	Servers(ctx context.Context) ([]ServerRow, error)

	// Load reads the live part: every job that is live with its spec, nodes, users, projects, QOS, reservations,
	// fleets, tokens, open runs, submit keys that were not purged, counters. All of it is as of one moment,
	// Image.Seq.
	Load(ctx context.Context) (*Image, error)

	// Commit writes c in one transaction under epoch and is durable when it returns. Its events must follow the last
	// one committed without a gap. Any error but ErrStale leaves the outcome unknown: the caller must Load again.
	// Text that is not UTF-8 or holds NUL is stored with U+FFFD in place of it.
	Commit(ctx context.Context, epoch int64, c *core.Changes) error

	// Probe reports whether a write would work now (disk full, database away, stale epoch), without changing anything
	// that is read. It writes, so call it now and then.
	Probe(ctx context.Context, epoch int64) error

	Blob(ctx context.Context, h core.Hash) ([]byte, error)
	// Blobs finds blobs that the spec stored under id refers to, nil for a zero hash. Knowing the spec makes it faster
	// than Blob: use it to launch.
	Blobs(ctx context.Context, id core.JobID, hashes ...core.Hash) ([][]byte, error)
	// Jobs answers accounting and lookups of jobs that have left memory, by index, ascending id unless q.Newest;
	// specs attached. A caller that joins them with live jobs takes the engine's snapshot first and lets the store's
	// record win: so none is missed.
	Jobs(ctx context.Context, q JobQuery) ([]*core.Job, error)
	Steps(ctx context.Context, jobs []core.JobID) ([]*core.Step, error)
	// Events after seq, at most limit; ErrGone if some of them were purged.
	Events(ctx context.Context, after int64, limit int) ([]core.Event, error)
	// NodeEvents are the last events of a node that are still there, at most limit, oldest first.
	NodeEvents(ctx context.Context, node core.NodeName, limit int) ([]core.Event, error)
	// Usage calls each for every finished job that can have run in [from, until), in no order; u is used again for the
	// next one.
	Usage(ctx context.Context, from, until core.Time, each func(u *JobUsage)) error
	// NodeHistory calls each for the events of nodes before a moment that are still there, oldest first; e is used
	// again for the next one.
	NodeHistory(ctx context.Context, until core.Time, each func(e *core.Event)) error
	// PastReservations are the occurrences of advance reservations that overlap [from, until), by start.
	PastReservations(ctx context.Context, from, until core.Time) ([]*core.AdvanceReservation, error)
	// Runs finds runs, ended ones included, newest first.
	Runs(ctx context.Context, q RunQuery) ([]*core.Run, error)
	SubmitKey(ctx context.Context, key string) (core.JobID, error)

	// SealWith has blobs that are committed from now on lie sealed, and those that lie sealed opened. Call it before
	// the first such commit; until then blobs lie as they are.
	SealWith(s Sealer)
	// Seals returns which key is the present one and how far the sealing of what is older has come. ErrNotFound: nobody
	// said.
	Seals(ctx context.Context) (SealState, error)
	// BeginReseal makes a key the present one: whatever is not under it is to be sealed again.
	BeginReseal(ctx context.Context, epoch int64, key int64) error
	// Reseal seals a bounded batch with the sealer's present key and notes how far it came, in one transaction. What
	// is in the engine's state (fleets) is the engine's.
	Reseal(ctx context.Context, epoch int64) (SealState, error)
	// Compact writes again what holds secrets, so that nothing of what was overwritten is left in the store's files.
	// Nobody else gets at the store meanwhile: it is for times without a server.
	Compact(ctx context.Context) error

	// Sealed keeps small secrets (the CA, sealed by the caller) outside the engine's state.
	Sealed(ctx context.Context, name string) ([]byte, error)
	// keeps the first: returns nil and changes nothing if it exists
	PutSealed(ctx context.Context, name string, data []byte) error

	// Records are small documents that the server keeps beside the engine's state, by name.
	Records(ctx context.Context, kind string) ([]Record, error)
	// PutRecord makes or replaces one; a nil document removes it.
	PutRecord(ctx context.Context, epoch int64, kind string, r Record) error

	// AppendAudit adds entries to the audit log, gives them their numbers and is durable when it returns. Nothing but
	// Purge takes entries out again, and nothing changes them.
	AppendAudit(ctx context.Context, epoch int64, list []*core.AuditEntry) error
	// Audit finds entries of the audit log, the newest first.
	Audit(ctx context.Context, q AuditQuery) ([]*core.AuditEntry, error)

	// Purge removes a bounded batch of what is past its time; more reports that there is more to do.
	Purge(ctx context.Context, epoch int64, keep Retention, now core.Time) (removed int, more bool, err error)
	Close() error
}

// Sealer encrypts what is in the store; server/seal has one.
type Sealer interface {
	// Append seals plain under a name, appends that to dst and returns which key it is under.
	Append(dst []byte, name string, plain []byte) (sealed []byte, key int64, err error)
	Unseal(name string, sealed []byte) ([]byte, error)
	// Fresh reports whether a text is under the present key.
	Fresh(sealed []byte) bool
}

// SealState is how far the sealing of what is in the store has come.
type SealState struct {
	Key   int64 // the present one
	After int64 // packs up to this one are under it
	Last  int64 // the newest pack
	Done  bool  // all of them are
}

// Leader is who leads, or led last.
type Leader struct {
	Holder string // "": nobody yet
	Epoch  int64
	Seq    int64         // of the last event
	Left   time.Duration // of its lease, by the database's clock; 0 or less: it has ended
	Now    core.Time     // by the database's clock
}

// ServerRow is what a server notes of itself.
type ServerRow struct {
	ID  string
	Age time.Duration // since it was noted, by the database's clock
	Doc []byte        // JSON
}

// Image is the live part of the store.
type Image struct {
	Seq          int64 // of the last event
	NextJob      core.JobID
	NextNode     int64
	LastIDs      core.LastIDs
	Now          core.Time // of the last batch: the engine's time never goes back
	Jobs         []*core.Job
	Steps        []*core.Step // of live jobs
	Nodes        []*core.Node
	Users        []*core.User
	Projects     []*core.Project
	QOS          []*core.QOS
	Spent        []*core.Spent
	Tokens       []*core.Token
	Runs         []*core.Run // not ended
	Keys         []core.SubmitKey
	Reservations []*core.AdvanceReservation
	Fleets       []*core.Fleet
	Credentials  []*core.Credential
	Volumes      []*core.Volume
}

// JobQuery selects jobs. Zero fields do not restrict.
type JobQuery struct {
	IDs        []core.JobID // jobs, and all tasks of arrays with these ids
	Exact      bool         // only the jobs that have these ids themselves
	Users      []core.UserName
	Projects   []core.ProjectName
	States     []core.JobState
	Partitions []core.PartitionName
	Names      []string
	Nodes      []core.NodeName
	// A job overlaps [Since, Until) if it was submitted before Until and had not ended at Since.
	Since, Until core.Time
	Live         bool       // also jobs that have not left memory, for a process that does not lead
	Newest       bool       // by descending id
	After        core.JobID // page: ids above this, with Newest ids below it
	Limit        int        // 0: 10,000
	Seen         *Seen      // nil: all jobs
}

// JobUsage is what a report needs of a finished job.
type JobUsage struct {
	ID        core.JobID
	User      core.UserName
	Project   core.ProjectName
	Partition core.PartitionName
	State     core.JobState
	Submit    core.Time
	Eligible  core.Time
	Start     core.Time // 0: it never ran
	End       core.Time
	PausedFor int64 // nanoseconds it was suspended
	Array     *core.ArrayRef
	Alloc     *core.Alloc
	Earlier   *core.Earlier // attempts that went back to the queue
	GID       uint32
	WCKey     string
}

// Record is a small document by name.
type Record struct {
	Name string
	Doc  []byte // JSON
}

// RunQuery selects runs. Zero fields do not restrict.
type RunQuery struct {
	ID       string
	Project  core.ProjectName
	Projects []core.ProjectName // any of them
	Name     string
	Names    []string // any of them
	// Page: those made before Before, and of those made at that moment the ones whose id is below BeforeID; with
	// Oldest those after it.
	Before   core.Time
	BeforeID string
	Oldest   bool // by ascending creation
	Limit    int  // 0: 10,000
}

// Seen leaves out jobs that somebody does not get to see: those that are neither the user's nor in one of the projects.
type Seen struct {
	User     core.UserName
	Projects []core.ProjectName
}

// Retention says how long things stay. Zero means forever.
type Retention struct {
	Events    time.Duration
	MaxEvents int64
	Jobs      time.Duration
	Keys      time.Duration
	Audit     time.Duration
}

// AuditQuery selects entries of the audit log. Zero fields do not restrict.
type AuditQuery struct {
	User         core.UserName
	Token        string // its id or name
	Action       string // "job.cancel", or "job" for all that begin with "job."
	Object       string // all of it, or with * at its end how it begins
	Answer       string
	Since, Until core.Time // Since <= At < Until
	Before       int64     // page: numbers below this
	Limit        int       // 0: 10,000
}
