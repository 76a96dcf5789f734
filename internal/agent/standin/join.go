package standin

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// join is the life of the stand-in of a step that runs in the container of its job's batch step.
func join(l *wire.Launch, signals <-chan os.Signal) (int, error) {
	home := l.Key
	if l.Container.Step {
		home.Step = l.Key.Step
	} else if home.Step = l.Container.Home; home.Step == "" {
		home.Step = wire.BatchStep // an older server
	}
	folder := Folder(l.Container.Dir, home)
	conn, err := await(folder, l.Key.Job, signals)
	if err != nil {
		return 1, err
	}
	defer conn.Close()
	env, _ := core.TakeRegistryAuth(l.Environ())
	r := wire.Run{
		Argv: l.Container.Args, WorkDir: l.Container.WorkDir, Umask: l.Program.Umask, TTY: l.Stdio.PTY,
		ImageEnv: l.Container.ImageEnv,
	}
	r.RLimits = l.Container.Limits.RLimits
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	mine := taskEnv(os.Environ())
	if pmi := pmiSocket(mine); pmi != nil {
		files, r.Extra = append(files, pmi), 1
	}
	if err := conn.Send(wire.TypeRun, r, files, wire.JoinEnv(append(env, mine...))); err != nil {
		return 1, err
	}
	go func() { // until the process ends
		for sig := range signals {
			switch n := sig.(syscall.Signal); n {
			case unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE, unix.SIGWINCH:
			default:
				_ = conn.Send(wire.TypeRunSignal, wire.RunSignal{Number: int(n)}, nil) // the end says the rest
			}
		}
	}()
	for {
		f, err := conn.Next()
		if err != nil {
			return 1, lastWords(folder)
		}
		if f.Type != wire.TypeRunEnded {
			continue
		}
		var e wire.RunEnded
		if err := f.Decode(&e); err != nil {
			return 1, err
		}
		if e.Message != "" {
			fmt.Fprintln(os.Stderr, "bireme-container:", e.Message)
		}
		if e.Signal != 0 {
			dieOf(unix.Signal(e.Signal))
			return 128 + e.Signal, nil
		}
		return e.ExitCode, nil
	}
}

// dieOf ends this process as the program inside ended, so that the keeper sees the same end.
func dieOf(sig unix.Signal) {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // not our core
	signal.Reset(sig)
	_ = unix.Kill(os.Getpid(), sig)
	t := time.NewTimer(time.Second) // it is delivered to some thread
	<-t.C
}

// pmiSocket is what the keeper gave this task to speak with others of its MPI program, nil if nothing. Inside it is the
// first file after the standard streams; here the launch is before it.
func pmiSocket(env []string) *os.File {
	for i, e := range env {
		if v, ok := strings.CutPrefix(e, "PMI_FD="); ok {
			fd, err := strconv.Atoi(v)
			if err != nil || fd < 4 {
				return nil
			}
			env[i] = "PMI_FD=3"
			return os.NewFile(uintptr(fd), "pmi")
		}
	}
	return nil
}

// taskEnv is what the keeper gave this task of its own.
func taskEnv(env []string) []string {
	var out []string
	for _, e := range env {
		if !strings.HasPrefix(e, "PATH=") {
			out = append(out, e)
		}
	}
	return out
}

// takeJoins serves stand-ins of joining steps until the process ends.
func (s *standIn) takeJoins(l *net.UnixListener) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		s.mu.Lock()
		id := s.next
		s.next++
		conn := wire.NewPassConn(c)
		s.joined[id] = conn
		s.mu.Unlock()
		go s.serveJoin(id, conn) // until its step ends
	}
}

// serveJoin passes a joining step's wishes on. When its stand-in is gone its processes are ended, as the keeper would.
func (s *standIn) serveJoin(id int, conn *wire.PassConn) {
	defer conn.Close()
	for {
		f, err := conn.Next()
		if err == nil {
			err = s.passJoin(id, conn, f)
		}
		if err != nil {
			break
		}
	}
	s.mu.Lock()
	delete(s.joined, id)
	s.mu.Unlock()
	// those that ended already are no fault
	_ = s.conn.Send(wire.TypeRunSignal, wire.RunSignal{ID: id, Number: int(unix.SIGKILL)}, nil)
}

func (s *standIn) passJoin(id int, conn *wire.PassConn, f wire.Frame) error {
	switch f.Type {
	case wire.TypeRun:
		var r wire.Run
		if err := f.Decode(&r); err != nil {
			return err
		}
		files, err := conn.Files(3 + min(max(r.Extra, 0), 1))
		if err != nil {
			return err
		}
		defer func() {
			for _, file := range files {
				file.Close()
			}
		}()
		r.ID = id
		// A step is the same user's as its job, and sees what the job sees; its own variables come last.
		r.User = s.c.User
		if r.User == "" {
			r.User = s.image.Config.User
		}
		if s.c.Submitter {
			uid := s.l.Identity.UID
			r.UID, r.GID, r.Groups = &uid, s.l.Identity.GID, s.l.Identity.Groups
		}
		if r.WorkDir == "" {
			r.WorkDir = s.c.WorkDir
		}
		return s.conn.Send(wire.TypeRun, r, files, wire.JoinEnv(s.env), f.Payload)
	case wire.TypeRunSignal:
		var sig wire.RunSignal
		if err := f.Decode(&sig); err != nil {
			return err
		}
		return s.conn.Send(wire.TypeRunSignal, wire.RunSignal{ID: id, Number: sig.Number}, nil)
	}
	return fmt.Errorf("a frame of type %d from a step that joins", f.Type)
}

// toJoined passes news on to the step they are about.
func (s *standIn) toJoined(id int, f wire.Frame) {
	s.mu.Lock()
	conn := s.joined[id]
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Send(f.Type, json.RawMessage(f.Header), nil, f.Payload) // gone: its end is seen by serveJoin
	}
}
