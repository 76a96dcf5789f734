package cmd

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// InBackground reports whether in is the terminal of a session in which this process runs in the background: a read
// would stop it.
func InBackground(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return false
	}
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil && group != unix.Getpgrp()
}

// AwaitForeground returns when in may be read, or with ctx.
func AwaitForeground(ctx context.Context, in io.Reader) {
	if !InBackground(in) {
		return
	}
	tick := time.NewTicker(100 * time.Millisecond) // no signal tells of the change
	defer tick.Stop()
	for InBackground(in) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
