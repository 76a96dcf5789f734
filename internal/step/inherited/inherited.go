// Package inherited keeps the files that a daemon was started with to itself.
package inherited

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Keep keeps files that this process was started with from the processes it starts. Whoever started the
// cluster may have had files of root open, and every program between them and the keeper passes on what it does not
// know.
func Keep() error {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("inherited files: %w", err)
	}
	for _, e := range names {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd) // the one of the listing itself is closed already, which is no harm
		}
	}
	return nil
}
