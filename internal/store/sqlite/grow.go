package sqlite

import (
	"os"
	"sync/atomic"
	"time"
)

// grower writes zeros at the end of the log's file, ahead of the writer. Where a file grows, or blocks are written
// for the first time, the file system has more to do than to write them: an fsync waits for its journal, or for a
// worker of the kernel that has no more of the processors than any user's process. Over blocks that were written
// before, a commit is one write. After the log has begun again it is written over by itself.
//
// The zeros are appended (O_APPEND), so they never lie over what SQLite has written, whoever comes first; SQLite
// takes them for the end of the log, as it does what an earlier one has left.
type grower struct {
	file string
	size atomic.Int64 // of the file, as it was seen last
	wake chan struct{}
}

const (
	growFrom  = 64 // pages of a log that is worth it
	growChunk = 512 << 10
	growAhead = 8 * growChunk // of the log's end
	growLeast = 4 * growChunk // with less than that left it grows
	// growPause is the time between two chunks: commits go first.
	growPause = 20 * time.Millisecond
	// growRetry is the time without, after commits came faster than zeros or there was an error (a full disk).
	growRetry = time.Second
)

// reached notes the end of the log after a commit.
func (g *grower) reached(pages int32) {
	if pages >= growFrom && g.size.Load()-logSize(pages) < growLeast {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

// logSize is how many bytes a log of so many pages has.
func logSize(pages int32) int64 { return 32 + int64(pages)*(pageSize+24) }

// run grows the file until quit is closed. end is the pages of the log.
func (g *grower) run(quit <-chan struct{}, end func() int32) {
	zeros := make([]byte, growChunk)
	for {
		select {
		case <-quit:
			return
		case <-g.wake:
		}
		for more := true; more; {
			var pause time.Duration
			more, pause = g.step(zeros, logSize(end()))
			select {
			case <-quit:
				return
			case <-time.After(pause):
			}
		}
	}
}

// step appends a chunk if the file ends less than growAhead behind the log's end. It reports whether there may be
// more to do, and after which time.
func (g *grower) step(zeros []byte, end int64) (more bool, pause time.Duration) {
	f, err := os.OpenFile(g.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return false, growRetry
	}
	defer f.Close() // what matters was synced
	st, err := f.Stat()
	if err != nil {
		return false, growRetry
	}
	was := g.size.Swap(st.Size())
	if st.Size() >= end+growAhead {
		return false, 0
	}
	if was > 0 && st.Size() > was { // commits made it longer: they are faster, and would wait for zeros
		return false, growRetry
	}
	n, err := f.Write(zeros)
	g.size.Add(int64(n))
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return false, growRetry
	}
	return true, growPause
}
