package cmd

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Terminal is the caller's terminal while a task has it. A nil one is none.
type Terminal struct {
	f   *os.File
	old *unix.Termios
}

// RawTerminal makes the terminal that in is raw: what is typed goes to the task as it is. Nil: it is no terminal.
func RawTerminal(in io.Reader) *Terminal {
	f, ok := in.(*os.File)
	if !ok {
		return nil
	}
	old, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &raw); err != nil {
		return nil
	}
	return &Terminal{f: f, old: old}
}

// Restore gives the terminal back as it was.
func (t *Terminal) Restore() {
	if t != nil {
		_ = unix.IoctlSetTermios(int(t.f.Fd()), unix.TCSETS, t.old)
	}
}

// Size is how many rows and columns it has.
func (t *Terminal) Size() (rows, cols uint16, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	ws, err := unix.IoctlGetWinsize(int(t.f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return ws.Row, ws.Col, true
}
