package initd

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// The exit statuses of what did not come to run, as shells give them.
const (
	ExitCannotRun = 126
	ExitNotFound  = 127
	exitKilled    = 128 + int(unix.SIGKILL)
)

// run is a program under way.
type run struct {
	id  int
	pid int
}

// server is the first process.
type server struct {
	conn *wire.PassConn
	env  []string // what the image sets

	mu   sync.Mutex
	pids map[int]*run
	ids  map[int]*run
	over chan wire.RunEnded // the end of the first program
	done bool               // it has ended: nothing new begins
	gang []string           // variables of a job with several containers
	// Of a job whose program runs in several containers, in the first of them; nil: it runs here alone.
	ranks   *ranks
	waiting bool // for the others, before the first program begins
	// Of a job whose commands run on a terminal.
	terminal *terminal // of the first program, while it runs
	jobd     int       // process id of the server beside the job, which has the terminals of a held container
	vars     []byte    // environment of the first program, which those that join find too
}

// Serve dials the stand-in and does what it says. It returns the status to exit with.
func Serve(socket string) (int, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return ExitCannotRun, fmt.Errorf("dial the stand-in: %w", err)
	}
	s := &server{
		conn: wire.NewPassConn(c), env: imageEnv(os.Environ()), pids: map[int]*run{}, ids: map[int]*run{},
		over: make(chan wire.RunEnded, 1),
	}
	// As pid 1 orphans come to us anyway; otherwise we ask for them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return ExitCannotRun, fmt.Errorf("become the parent of orphans: %w", err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	told := make(chan os.Signal, 16) // by the engine, or by whoever stops the container with its tools
	signal.Notify(told, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	gone := make(chan error, 1)
	go func() { gone <- s.read() }() // ends with the connection, which ends with us
	for {
		select {
		case <-ended:
			s.reap()
		case sig := <-told:
			s.signal(wire.RunSignal{Number: int(sig.(syscall.Signal))})
		case end := <-s.over:
			return s.finish(end), nil
		case err := <-gone:
			s.killAll()
			return exitKilled, fmt.Errorf("the stand-in is gone: %w", err)
		}
	}
}

// read takes orders until the stand-in is gone.
func (s *server) read() error {
	for {
		f, err := s.conn.Next()
		if err != nil {
			return err
		}
		switch f.Type {
		case wire.TypeRun:
			var r wire.Run
			if err := f.Decode(&r); err != nil {
				return err
			}
			files, err := s.conn.Files(3 + max(r.Extra, 0))
			if err != nil {
				return err
			}
			script, parcel, env, err := r.Cut(f.Payload)
			if err != nil {
				return err
			}
			if r.ID == 0 {
				s.first(r, script, parcel, env, files)
			} else {
				s.begin(r, script, env, files)
			}
		case wire.TypeRunSignal:
			var sig wire.RunSignal
			if err := f.Decode(&sig); err != nil {
				return err
			}
			s.signal(sig)
		case wire.TypeRunStat:
			s.tell(wire.TypeRunUsed, usageNow())
		}
	}
}

// tell sends news. A stand-in that is gone is noticed by read.
func (s *server) tell(t wire.Type, header any) { _ = s.conn.Send(t, header, nil) }

// first prepares the container and begins what it is for.
func (s *server) first(r wire.Run, script, parcel, env []byte, files []*os.File) {
	if r.Terminal {
		s.mu.Lock()
		s.vars = withoutAccess(env)
		s.mu.Unlock()
	}
	if err := s.unpack(r, parcel, env); err != nil {
		closeAll(files)
		s.lost("files: " + err.Error())
		return
	}
	if r.Gang != nil {
		if err := s.enlist(r, script, env); err != nil {
			closeAll(files)
			s.lost(err.Error())
			return
		}
	}
	switch {
	case r.Hold:
		closeAll(files)
		s.tell(wire.TypeRunStarted, wire.RunStarted{ID: r.ID})
	case r.Gang != nil:
		s.mu.Lock()
		s.waiting = true
		s.mu.Unlock()
		go s.gather(r, script, env, files) // until the job begins, or the container ends
	default:
		s.begin(r, script, env, files)
	}
}

// begin starts a program and tells how that went.
func (s *server) begin(r wire.Run, script, env []byte, files []*os.File) {
	defer closeAll(files)
	s.mu.Lock()
	s.waiting = s.waiting && r.ID != 0
	if s.done {
		s.mu.Unlock()
		return
	}
	pid, fault := s.fork(r, script, env, files)
	if fault == nil {
		p := &run{id: r.ID, pid: pid}
		s.pids[pid], s.ids[r.ID] = p, p
	}
	s.mu.Unlock()
	switch {
	case fault == nil:
		s.tell(wire.TypeRunStarted, wire.RunStarted{ID: r.ID})
	case r.ID == 0:
		s.mu.Lock()
		s.settle(0, *fault)
		s.mu.Unlock()
	default:
		fault.ID = r.ID
		s.tell(wire.TypeRunEnded, fault)
	}
}

// reap collects all that has ended, orphans too.
func (s *server) reap() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		var w unix.WaitStatus
		var used unix.Rusage
		pid, err := unix.Wait4(-1, &w, unix.WNOHANG, &used)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		s.ended(pid, w, &used)
	}
}

// ended notes the end of a process; the lock is held.
func (s *server) ended(pid int, w unix.WaitStatus, used *unix.Rusage) {
	p := s.pids[pid]
	if p == nil {
		return
	}
	delete(s.pids, pid)
	delete(s.ids, p.id)
	end := wire.RunEnded{ID: p.id, ExitCode: max(w.ExitStatus(), 0), Used: used2(used)}
	if w.Signaled() {
		end.ExitCode, end.Signal = 0, int(w.Signal())
	}
	if p.id == 0 {
		s.settle(0, end)
		return
	}
	if end.Signal == int(unix.SIGKILL) && oomKills() > 0 {
		end.Message = "out of memory: the kernel killed processes of the container"
	}
	s.tell(wire.TypeRunEnded, end)
}

// signal hands a signal on: to every process, or to those of one program that joined.
func (s *server) signal(sig wire.RunSignal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sig.ID == 0 && s.waiting && stops(unix.Signal(sig.Number)) {
		s.settle(0, wire.RunEnded{Signal: sig.Number, Message: "ended while it waited for its other containers"})
		return
	}
	if sig.ID == 0 && s.vars != nil && stops(unix.Signal(sig.Number)) { // as Ctrl+C
		if s.terminal != nil {
			s.terminal.interrupt()
		} else if s.jobd != 0 {
			_ = unix.Kill(s.jobd, unix.Signal(sig.Number))
		}
		return
	}
	if sig.ID == 0 && alone() {
		_ = unix.Kill(-1, unix.Signal(sig.Number)) // nobody there is no fault
		return
	}
	if p := s.ids[sig.ID]; p != nil {
		_ = unix.Kill(-p.pid, unix.Signal(sig.Number))
	}
}

// alone reports whether all processes we can see are our own, as in a container. Elsewhere -1 would mean the machine.
func alone() bool { return os.Getpid() == 1 }

// killAll ends every process and returns when none is left.
func (s *server) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = true
	for {
		if alone() {
			_ = unix.Kill(-1, unix.SIGKILL)
		} else {
			for pid := range s.pids {
				_ = unix.Kill(-pid, unix.SIGKILL)
			}
			if len(s.pids) == 0 {
				return // orphans of a test are not ours to wait for
			}
		}
		var w unix.WaitStatus
		pid, err := unix.Wait4(-1, &w, 0, nil)
		if err == unix.ECHILD {
			return
		}
		delete(s.pids, pid)
	}
}

// finish ends what is left after the first program, and tells how it ended.
func (s *server) finish(end wire.RunEnded) int {
	s.killAll()
	if s.terminal != nil {
		s.terminal.ended()
	}
	u := usageNow()
	end.Used = u.Used
	end.OOMKills = oomKills()
	s.tell(wire.TypeRunEnded, end)
	if end.Signal != 0 {
		return 128 + end.Signal
	}
	return end.ExitCode
}
