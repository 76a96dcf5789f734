package srun

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signals are those srun has a say in. SIGTSTP is ignored, as in Slurm.
type signals struct {
	c    chan os.Signal
	pipe chan os.Signal // SIGPIPE, which nobody looks at

	lastInt  time.Time // the last that was answered with how things stand
	lastSent time.Time // the last that was passed on
}

func catchSignals() *signals {
	s := &signals{c: make(chan os.Signal, 16)}
	signal.Notify(s.c, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT)
	// A pipe that nobody reads must not end srun before it has given its allocation back: writes fail instead.
	s.pipe = make(chan os.Signal, 1)
	signal.Notify(s.pipe, syscall.SIGPIPE)
	// A read of a terminal from the background fails instead of stopping srun.
	signal.Ignore(syscall.SIGTSTP, syscall.SIGTTIN)
	return s
}

func (s *signals) stop() {
	signal.Stop(s.c)
	signal.Stop(s.pipe)
	signal.Reset(syscall.SIGTSTP, syscall.SIGTTIN)
}
