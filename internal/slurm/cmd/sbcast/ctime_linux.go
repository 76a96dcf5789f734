package sbcast

import (
	"os"
	"syscall"
)

// changed is when a file last changed, by its content or its name; 0: unknown. A copied time (-p) does not hide it.
func changed(info os.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
