package core

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// JobID numbers jobs, arrays and het components from 1; an id is never used twice, not even after a crash.
type JobID int64

// SpecRevisions is how many numbers there are for the revisions of one job's spec.
const SpecRevisions = 1 << 12

// SpecOwner is the job or array that a spec belongs to. The first is stored under its owner's id; each revision, made
// when the job is changed, under a number below zero, where no job id is. Tasks share the spec of their array until one
// of them is changed by itself.
func SpecOwner(spec JobID) JobID {
	if spec < 0 {
		return -spec / SpecRevisions
	}
	return spec
}

// Names of nouns. They are distinct types so that a node is never passed where a partition is meant.
type (
	NodeName      string
	UserName      string
	ProjectName   string
	PartitionName string
	QOSName       string
)

// Bytes is an amount of memory or disk.
type Bytes int64

// Sizes, in powers of 1024 as Slurm counts them.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
)

// Time is a moment in microseconds since 1970 UTC; zero means "not set". It is an integer so that records compare,
// store and replay exactly.
type Time int64

// At converts a wall-clock time; the caller read the clock.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMicro())
}

// Go converts back; the zero Time gives the zero time.Time.
func (t Time) Go() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t))
}

// Add returns t+d.
func (t Time) Add(d time.Duration) Time { return t + Time(d/time.Microsecond) }

// Sub returns t-u. Beyond 292 years it is the longest Duration there is: a wrapped one would be in the past.
func (t Time) Sub(u Time) time.Duration {
	const most = Time(math.MaxInt64 / time.Microsecond)
	return time.Duration(max(-most, min(most, t-u))) * time.Microsecond
}

// Unix returns whole seconds, as Slurm's interfaces want them.
func (t Time) Unix() int64 { return int64(t) / 1e6 }

// Seconds is a length of time in whole seconds; zero means "not set", Forever means without limit.
type Seconds int64

// Forever is a limit that never comes.
const Forever Seconds = 1<<62 - 1

// Duration converts; Forever saturates.
func (s Seconds) Duration() time.Duration {
	if s > Seconds(1<<62/int64(time.Second)) {
		return 1 << 62
	}
	return time.Duration(s) * time.Second
}

// Hash names a blob (a script, an environment) by the SHA-256 of its bytes. The zero Hash means "none".
type Hash [32]byte

// IsZero reports whether h names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// String is the hexadecimal form.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes hex, and nothing for the zero Hash.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return hex.AppendEncode(nil, h[:]), nil
}

// UnmarshalText reads what MarshalText wrote.
func (h *Hash) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*h = Hash{}
		return nil
	}
	if len(b) != 2*len(h) {
		return fmt.Errorf("a blob hash has %d hexadecimal digits, not %d", 2*len(h), len(b))
	}
	_, err := hex.Decode(h[:], b)
	return err
}
