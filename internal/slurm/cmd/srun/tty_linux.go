package srun

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminal is the caller's terminal while a task has it.
type terminal struct {
	f   *os.File
	old *unix.Termios
}

// openTTY makes the terminal raw for --pty. Without a terminal the option is dropped, as Slurm does.
func (s *run) openTTY() *terminal {
	if !s.r.Step.Pty {
		return nil
	}
	f, ok := s.w.In.(*os.File)
	if !ok {
		return s.noTTY()
	}
	old, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return s.noTTY()
	}
	raw := *old
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &raw); err != nil {
		return s.noTTY()
	}
	return &terminal{f: f, old: old}
}

func (s *run) noTTY() *terminal {
	s.w.Errorf("Not using a pseudo-terminal, disregarding --pty option")
	return nil
}

// restore gives the terminal back as it was.
func (t *terminal) restore() {
	if t != nil {
		_ = unix.IoctlSetTermios(int(t.f.Fd()), unix.TCSETS, t.old)
	}
}

func (t *terminal) size() (rows, cols uint16, ok bool) {
	if t == nil {
		return 0, 0, false
	}
	ws, err := unix.IoctlGetWinsize(int(t.f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0, false
	}
	return ws.Row, ws.Col, true
}
