package srun

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signals are those srun has a say in. SIGTSTP is ignored, as in Slurm.
type signals struct {
	c chan os.Signal

	lastInt time.Time
	aborted bool
}

func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 16)}
	signal.Notify(s.c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH)
	signal.Ignore(syscall.SIGTSTP)
	return s
}

func (s *signals) stop() {
	signal.Stop(s.c)
	signal.Reset(syscall.SIGTSTP)
}
