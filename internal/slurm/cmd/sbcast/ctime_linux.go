package sbcast

import (
	"os"
	"syscall"
	"time"
)

// changed is when a file last changed, by its content or its name; 0: unknown. A copied time (-p) does not hide it.
func changed(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

// stat is what -v tells of a file beside what os.FileInfo has.
type stat struct {
	uid, gid, mode    uint32
	accessed, changed time.Time
}

func statOf(info os.FileInfo) (stat, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return stat{}, false
	}
	return stat{
		uid: st.Uid, gid: st.Gid, mode: st.Mode,
		accessed: time.Unix(st.Atim.Unix()), changed: time.Unix(st.Ctim.Unix()),
	}, true
}
