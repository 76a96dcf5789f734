package logstore

import (
	"fmt"
	"strconv"

	"bireme.dev/bireme/internal/core"
)

// Bounds say how much of jobs' output is kept. Zero: no bound.
type Bounds struct {
	PerJob  int64 // of one log
	PerUser int64 // of all logs of a user
	MinFree int64 // of the disk is left to others
}

// The limits, by the names of their settings.
const (
	LimitJob  = "limits.log_per_job"
	LimitUser = "limits.log_per_user"
	LimitDisk = "limits.min_free_disk"
)

// Full is beyond every offset: the store keeps no more of a log, and its writer need not send it.
const Full = int64(1) << 62

// SetBounds has other bounds hold from now on.
func (s *Store) SetBounds(b Bounds) { s.bounds.Store(&b) }

// stops is the line that ends what is kept of a log.
func (b *Bounds) stops(limit string) string {
	switch limit {
	case LimitJob:
		return fmt.Sprintf(
			"[bireme: the output ends here: this job has written %s, as much as is kept (%s); it runs on]\n",
			bytesText(b.PerJob), limit)
	case LimitUser:
		return fmt.Sprintf("[bireme: output is dropped from here on: the logs of this user have %s, as much as is "+
			"kept (%s); the job runs on]\n",
			bytesText(b.PerUser), limit)
	default:
		return fmt.Sprintf("[bireme: output is dropped from here on: less than %s of the server's disk is free (%s); "+
			"the job runs on]\n",
			bytesText(b.MinFree), limit)
	}
}

// goesOn is the line before what is kept again.
func goesOn(limit string) string {
	return fmt.Sprintf("[bireme: output is kept again from here on (%s)]\n", limit)
}

// bytesText writes a size as settings do.
func bytesText(n int64) string {
	for i, unit := range []string{"T", "G", "M", "K"} {
		if size := int64(1) << (40 - 10*i); n >= size && n%size == 0 {
			return strconv.FormatInt(n/size, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10) + " bytes"
}

// room returns how much of n bytes may be added to a log, and which limit keeps the rest out.
func (s *Store) room(e *entry, owner core.UserName, n int64) (int64, string) {
	b := s.bounds.Load()
	if s.disk.Low(s.dir, b.MinFree, n) {
		return 0, LimitDisk
	}
	fits, why := n, ""
	if b.PerJob > 0 && e.size+n > b.PerJob {
		fits, why = max(0, b.PerJob-e.size), LimitJob
	}
	if got := s.usage.take(owner, fits, b.PerUser); got < fits {
		return got, LimitUser
	}
	return fits, why
}

// Dropping returns which limit keeps output of a log from being kept; empty: none.
func (s *Store) Dropping(k Key) string {
	e, err := s.loadedEntry(k)
	if err != nil {
		return ""
	}
	defer s.put(e)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropping
}

// DiskLow reports whether output is dropped because the disk has too little room.
func (s *Store) DiskLow() bool { return s.disk.IsLow() }
