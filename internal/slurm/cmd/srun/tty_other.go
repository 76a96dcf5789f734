//go:build !linux

package srun

// terminal: --pty needs a Linux terminal.
type terminal struct{}

func (s *run) openTTY() *terminal {
	if s.r.Step.Pty {
		s.w.Errorf("Not using a pseudo-terminal, disregarding --pty option")
	}
	return nil
}

func (t *terminal) restore() {}

func (t *terminal) size() (rows, cols uint16, ok bool) { return 0, 0, false }
