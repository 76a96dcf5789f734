package seal

import (
	"io/fs"
	"os"
	"syscall"
)

// chownLike gives a file the owner that another one has, so that a root's rotation leaves the ring to the server's
// user.
func chownLike(f *os.File, st fs.FileInfo) error {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(int(s.Uid), int(s.Gid))
}
