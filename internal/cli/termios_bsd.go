//go:build !linux

package cli

import "golang.org/x/sys/unix"

const termios = unix.TIOCGETA // macOS, for the tool on a laptop
