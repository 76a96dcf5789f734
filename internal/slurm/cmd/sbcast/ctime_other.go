//go:build !linux

package sbcast

import (
	"os"
	"time"
)

// changed is when a file last changed; only nodes ask, which run Linux.
func changed(info os.FileInfo) int64 { return info.ModTime().UnixNano() }

// stat is what -v tells of a file beside what os.FileInfo has.
type stat struct {
	uid, gid, mode    uint32
	accessed, changed time.Time
}

func statOf(os.FileInfo) (stat, bool) { return stat{}, false }
