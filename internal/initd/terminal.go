package initd

import (
	"bytes"
	"io"
	"os"
	"path"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// The commands of a dstack run find a terminal: programs show progress as to a person, and a stop begins with Ctrl+C,
// which reaches what runs in the foreground and nothing else. What is left of the session after hangUpAfter gets
// SIGHUP; the keeper's KILL comes when the job's grace is over.
//
//	commands ──► slave │ master ──► the job's output
//	                      ▲ Ctrl+C

// hangUpAfter is how long what is interrupted has to end by itself.
const hangUpAfter = 5 * time.Second

// outputAfterEnd is how long a terminal is read after the programs on it were ended.
const outputAfterEnd = 2 * time.Second

// terminal is one that the commands of a job run on.
type terminal struct {
	master, slave *os.File
	copied        chan struct{} // closed when all output was copied
	once          sync.Once
	mu            sync.Mutex
	session       int // process id of its leader; 0: not started, or ended
}

// newTerminal makes a terminal and gives its master and the name of its slave.
func newTerminal() (*os.File, string, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, "", err
	}
	n := 0
	err = control(master, func(fd int) (err error) {
		if n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); err == nil {
			err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
		}
		return err
	})
	if err != nil {
		master.Close()
		return nil, "", err
	}
	return master, "/dev/pts/" + strconv.Itoa(n), nil
}

// openTerminal makes a terminal for a job's commands, owned by their user. Lines end as the commands end them: the
// output is a log as well.
func openTerminal(id identity) (*terminal, error) {
	master, name, err := newTerminal()
	if err != nil {
		return nil, err
	}
	slave, err := os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		master.Close()
		return nil, err
	}
	t := &terminal{master: master, slave: slave, copied: make(chan struct{})}
	err = control(slave, func(fd int) error {
		mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return err
		}
		mode.Oflag &^= unix.ONLCR
		mode.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(fd, unix.TCSETS, mode); err != nil {
			return err
		}
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	})
	if err != nil {
		slave.Close()
		master.Close()
		return nil, err
	}
	if !id.ours() {
		_ = os.Chown(name, int(id.uid), int(id.gid)) // the open file is enough for most
	}
	return t, nil
}

// started begins to copy what the session writes; it runs from now on.
func (t *terminal) started(pid int, out io.Writer, done func()) {
	t.slave.Close()
	t.mu.Lock()
	t.session = pid
	t.mu.Unlock()
	go func() { // until nobody holds the slave any more
		defer close(t.copied)
		_, _ = io.Copy(out, t.master)
		done()
	}()
}

// close drops a terminal on which nothing was started.
func (t *terminal) close() {
	t.slave.Close()
	t.master.Close()
}

// interrupt types Ctrl+C, and hangs up on what is left after a while.
func (t *terminal) interrupt() {
	t.once.Do(func() {
		_, _ = t.master.Write([]byte{3}) // a session that is gone needs none
		time.AfterFunc(hangUpAfter, t.hangUp)
	})
}

// hangUp sends SIGHUP to the session's leader and to what is in the foreground.
func (t *terminal) hangUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session == 0 {
		return
	}
	group := 0
	_ = control(t.master, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	for _, pid := range []int{t.session, group} {
		if pid > 1 {
			_ = unix.Kill(-pid, unix.SIGHUP)
			_ = unix.Kill(-pid, unix.SIGCONT)
		}
	}
}

// ended waits for the rest of the output, if somebody holds the terminal still not for long.
func (t *terminal) ended() {
	t.mu.Lock()
	t.session = 0
	t.mu.Unlock()
	limit := time.NewTimer(outputAfterEnd)
	defer limit.Stop()
	select {
	case <-t.copied:
	case <-limit.C:
	}
	t.master.Close()
}

// scriptFile is where a program finds what commandLine wants in a file.
const scriptFile = "/proc/self/fd/3"

// commandLine is the command line of a script, and what has to be in scriptFile for it; nil: nothing.
func commandLine(script []byte, args []string, onTerminal bool) (argv []string, inFile []byte) {
	if !onTerminal {
		return append(wire.Interpreter(script), append([]string{scriptFile}, args...)...), script
	}
	return interactive(script, args)
}

// maxArgument bounds one argument of a program: Linux takes 128 KiB with the NUL byte at its end.
const maxArgument = 128<<10 - 1

// interactive is the command line of commands that run on a terminal: those of a script as an argument of its
// interpreter, which is a shell. Bash is interactive, so that it reads the user's .bashrc, which images use to set up
// their environment. Other shells have no such file, and some greet in the output when they are interactive. Commands
// that are too long for an argument are read from a file.
func interactive(script []byte, args []string) (argv []string, inFile []byte) {
	_, body, _ := bytes.Cut(script, []byte{'\n'})
	argv = wire.Interpreter(script)
	if path.Base(argv[len(argv)-1]) == "bash" {
		argv = append(argv, "-i")
	}
	text := string(body)
	if len(body) > maxArgument {
		text, inFile = ". "+scriptFile, body
	}
	argv = append(argv, "-c", text)
	if len(args) > 0 {
		argv = append(append(argv, wire.Interpreter(script)[0]), args...)
	}
	return argv, inFile
}

// withoutAccess is an environment without what opens the job's repository: only its first lines need that.
func withoutAccess(env []byte) []byte {
	out := []byte{}
	for e := range bytes.SplitSeq(env, []byte{0}) {
		if len(e) > 0 && !bytes.HasPrefix(e, []byte("BIREME_REPO_")) {
			out = append(append(out, e...), 0)
		}
	}
	return out
}

// stops reports whether a signal asks programs to end.
func stops(n unix.Signal) bool {
	return n == unix.SIGTERM || n == unix.SIGINT || n == unix.SIGHUP || n == unix.SIGQUIT
}
