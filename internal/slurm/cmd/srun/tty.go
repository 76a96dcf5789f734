package srun

import "bireme.dev/bireme/internal/slurm/cmd"

// openTTY makes the terminal raw for --pty. Without a terminal the option is dropped, as Slurm does.
func (s *run) openTTY() *cmd.Terminal {
	if !s.r.Step.Pty {
		return nil
	}
	t := cmd.RawTerminal(s.w.In)
	if t == nil {
		s.w.Errorf("Not using a pseudo-terminal, disregarding --pty option")
	}
	return t
}
