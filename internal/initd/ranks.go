package initd

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/ranklog"
)

// ranks is a job whose program runs in each of its containers, seen from the first one.
type ranks struct {
	left       int // that have not ended
	over       bool
	masterDone bool // the first one's end is that of all
	out        *ranklog.Mux
	ends       []core.RankExit // of those that ended by themselves
}

// ended notes the end of one of them and reports whether that is the end of all: the first that fails, or the last.
func (k *ranks) ended(rank int, end wire.RunEnded) (wire.RunEnded, bool) {
	if k.over {
		return end, false
	}
	k.left--
	if end.Cause == wire.CauseNone {
		k.ends = append(k.ends, core.RankExit{
			Rank: int32(rank), Code: int32(end.ExitCode), Signal: int32(end.Signal),
		})
	}
	end.Ranks = k.ends
	if end.ExitCode != 0 || end.Signal != 0 || end.Cause != wire.CauseNone {
		k.over = true
		return end, true
	}
	k.over = k.left == 0 || rank == 0 && k.masterDone
	return end, k.over
}

// gather waits for the other containers, then begins the job: here, and there if it runs in all of them. It takes over
// files.
func (s *server) gather(r wire.Run, script, env []byte, files []*os.File) {
	say := func(text string, loud bool) {
		s.tell(wire.TypeRunDoing, wire.RunDoing{Text: text})
		if loud {
			fmt.Fprintln(files[2], "bireme-init:", text)
		}
	}
	clients, err := meetPeers(context.Background(), r.Gang, say)
	if err != nil {
		closeAll(files)
		s.lost(fmt.Sprint(err))
		return
	}
	if !r.Gang.Each {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
		s.begin(r, script, env, files)
		return
	}
	out, err := dup(files[1:2])
	if err != nil {
		closeAll(files)
		s.lost(err.Error())
		return
	}
	mux := ranklog.NewMux(out[0])
	s.mu.Lock()
	s.ranks = &ranks{left: len(clients), masterDone: r.Gang.MasterDone, out: mux}
	s.mu.Unlock()
	last := r.Gang.Order == core.StartWorkersFirst
	if !last {
		s.begin(r, script, env, files)
	}
	var begun sync.WaitGroup
	for rank, c := range clients {
		if c != nil {
			begun.Add(1)
			go func() { // until it ends there, or we do here
				defer c.Close()
				s.rankEnded(rank, remote(c, r.Gang, rank, mux.Rank(rank), begun.Done))
			}()
		}
	}
	if last {
		begun.Wait()
		s.begin(r, script, env, files)
	}
}

// remote runs the job's program in another container. It calls begun once that runs there, or cannot.
func remote(c *ssh.Client, g *wire.Gang, rank int, out io.Writer, begun func()) wire.RunEnded {
	where := fmt.Sprintf("rank %d on %s", rank, g.Peers[rank].Node)
	lost := func(err error) wire.RunEnded {
		return wire.RunEnded{
			Signal:  int(unix.SIGKILL),
			Message: fmt.Sprintf("%s: the connection to its container is lost: %v", where, err),
		}
	}
	s, err := c.NewSession()
	if err == nil {
		s.Stdout, s.Stderr = out, out
		err = s.Start(runCommand)
	}
	begun()
	if err != nil {
		return lost(err)
	}
	code, sig, err := exitOf(s.Wait())
	switch {
	case err != nil:
		return lost(err)
	case sig != 0:
		return wire.RunEnded{Signal: sig, Message: fmt.Sprintf("%s was ended by signal %d", where, sig)}
	case code != 0:
		return wire.RunEnded{ExitCode: code, Message: fmt.Sprintf("%s ended with status %d", where, code)}
	}
	return wire.RunEnded{}
}

// rankEnded notes the end of a program elsewhere.
func (s *server) rankEnded(rank int, end wire.RunEnded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle(rank, end)
}

// settle ends the job with a program of it, 0 for the one here, unless others are to end first; the lock is held.
func (s *server) settle(rank int, end wire.RunEnded) {
	if s.ranks != nil {
		var over bool
		if end, over = s.ranks.ended(rank, end); !over {
			return
		}
	}
	if !s.done {
		s.done = true
		s.over <- end
	}
}

// lost ends the job before it began.
func (s *server) lost(message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.done {
		s.done = true
		s.over <- wire.RunEnded{Cause: wire.CauseLaunchFailed, Signal: wire.LaunchFailedSignal, Message: message}
	}
}

func dup(files []*os.File) ([]*os.File, error) {
	var out []*os.File
	for _, f := range files {
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
		if err != nil {
			closeAll(out)
			return nil, os.NewSyscallError("fcntl", err)
		}
		out = append(out, os.NewFile(uintptr(fd), f.Name()))
	}
	return out, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
