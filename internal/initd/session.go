package initd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// session is one program of an SSH connection: a shell, a command or the file server.
type session struct {
	ch  ssh.Channel
	env []string
	job *jobd // nil: from outside

	gone chan struct{} // closed when the client is
	once sync.Once

	mu   sync.Mutex
	tty  *os.File // the master; nil: no terminal
	name string   // of the slave
	cmd  *exec.Cmd
}

// serve answers a session's requests. The program runs beside it.
func (s *session) serve(requests <-chan *ssh.Request) {
	var work sync.WaitGroup
	defer work.Wait()
	started := false
	for r := range requests {
		ok, start := true, func() {}
		switch r.Type {
		case "env":
			var e struct{ Name, Value string }
			if ok = !started && ssh.Unmarshal(r.Payload, &e) == nil; ok {
				s.env = append(s.env, e.Name+"="+e.Value)
			}
		case "pty-req":
			ok = !started && s.terminal() == nil && s.openTerminal(r.Payload) == nil
		case "window-change":
			var w struct{ Cols, Rows, Width, Height uint32 }
			if ok = ssh.Unmarshal(r.Payload, &w) == nil; ok {
				s.resize(w.Cols, w.Rows)
			}
		case "signal":
			var sig struct{ Name string }
			if ok = ssh.Unmarshal(r.Payload, &sig) == nil; ok {
				s.signal(unix.SignalNum("SIG" + sig.Name))
			}
		case "shell", "exec", "subsystem":
			var p struct{ Text string }
			if r.Type != "shell" {
				ok = ssh.Unmarshal(r.Payload, &p) == nil
			}
			ok = ok && !started && (r.Type != "subsystem" || p.Text == "sftp")
			if ok {
				started = true
				start = func() { work.Go(func() { s.run(r.Type, p.Text) }) }
			}
		default:
			ok = false
		}
		if r.WantReply {
			_ = r.Reply(ok, nil) // a client that is gone closes requests
		}
		start() // after the answer: a short program would close the channel before it
	}
	s.hangUp()
}

// run runs what was asked for and tells how it ended.
func (s *session) run(kind, text string) {
	defer s.ch.Close()
	if kind == "exec" && text == runCommand && s.job != nil {
		cmd, done, err := s.job.program()
		defer done()
		if err == nil {
			if cmd.Env = s.env; s.job.Terminal {
				err = s.runJobTerminal(cmd)
			} else {
				err = s.runPlain(cmd)
			}
		}
		s.tell(err)
		return
	}
	if kind == "subsystem" {
		code := 0
		if err := serveSFTP(s.ch); err != nil {
			code = 1
		}
		s.exit(code, "")
		return
	}
	sh := shell()
	cmd := exec.Command(sh)
	if kind == "exec" {
		cmd.Args = append(cmd.Args, "-c", text)
	} else {
		cmd.Args[0] = "-" + sh[strings.LastIndexByte(sh, '/')+1:] // a login shell
	}
	cmd.Env = s.env
	if home, err := os.UserHomeDir(); err == nil {
		if _, err := os.Stat(home); err == nil && kind == "shell" {
			cmd.Dir = home
		}
	}
	var err error
	if s.terminal() != nil {
		err = s.runTerminal(cmd)
	} else {
		err = s.runPlain(cmd)
	}
	s.tell(err)
}

// tell says how the program ended.
func (s *session) tell(err error) {
	var ended *exec.ExitError
	switch {
	case err == nil:
		s.exit(0, "")
	case errors.As(err, &ended):
		w := ended.Sys().(syscall.WaitStatus)
		if w.Signaled() {
			s.exit(0, strings.TrimPrefix(unix.SignalName(w.Signal()), "SIG"))
		} else {
			s.exit(w.ExitStatus(), "")
		}
	default:
		fmt.Fprintf(s.ch.Stderr(), "bireme-init: %v\n", err)
		s.exit(ExitNotFound, "")
	}
}

// runPlain runs a command with the channel as its streams.
func (s *session) runPlain(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = s.ch, s.ch.Stderr()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := s.begin(cmd); err != nil {
		return err
	}
	go func() { // until the client says that no more comes, or the channel is closed
		_, _ = io.Copy(in, s.ch)
		_ = in.Close()
	}()
	return s.wait(cmd)
}

// runJobTerminal runs a job's program on a terminal, with the channel as its output.
func (s *session) runJobTerminal(cmd *exec.Cmd) error {
	t, err := openTerminal(identity{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())})
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.slave, t.slave, t.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.begin(cmd); err != nil {
		t.close()
		return err
	}
	t.started(cmd.Process.Pid, s.ch, func() {})
	s.job.runs(t, true)
	defer s.job.runs(t, false)
	err = s.wait(cmd)
	t.ended()
	return err
}

// lastWords is how long a terminal is read after its shell has ended, if others hold it still.
const lastWords = 200 * time.Millisecond

// runTerminal runs a command on the session's terminal.
func (s *session) runTerminal(cmd *exec.Cmd) error {
	master := s.terminal()
	defer master.Close()
	slave, err := os.OpenFile(s.name, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = s.begin(cmd)
	slave.Close()
	if err != nil {
		return err
	}
	go func() { _, _ = io.Copy(master, s.ch) }() // until the channel is closed
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(s.ch, master) // ends with an error when the last holder of the slave is gone
	}()
	err = s.wait(cmd)
	// Whoever holds the terminal in the background does not hold the client: it has what was said so far.
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGHUP)
	_ = master.SetReadDeadline(time.Now().Add(lastWords))
	<-read
	return err
}

// begin starts the command, so that whoever hangs up finds it. A client that hung up before gets none: nobody would end
// it.
func (s *session) begin(cmd *exec.Cmd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gone:
		return errGone
	default:
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd = cmd
	return nil
}

// wait waits for the command, or for the client's end: what continues without a client continues without us.
func (s *session) wait(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }() // until it ends, or we do
	select {
	case err := <-done:
		s.mu.Lock()
		s.cmd = nil // its number may be another's from here on
		s.mu.Unlock()
		return err
	case <-s.gone:
		return errGone
	}
}

// errGone is why a command is not waited for any more.
var errGone = errors.New("the client is gone")

func (s *session) terminal() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tty
}

// exit returns how the program ended.
func (s *session) exit(code int, signal string) {
	if signal != "" {
		_, _ = s.ch.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Text   string
			Lang   string
		}{signal, false, "", ""}))
		return
	}
	_, _ = s.ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
}

func (s *session) signal(n syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil && n != 0 {
		_ = unix.Kill(-s.cmd.Process.Pid, n) // it may be gone
	}
}

// hangUp is what a terminal's end is to its programs. It is called when the client is gone, once or twice.
func (s *session) hangUp() {
	s.once.Do(func() { close(s.gone) }) // first: what begins from here on is not signaled
	s.signal(unix.SIGHUP)
	s.signal(unix.SIGCONT)
}

// openTerminal makes the terminal that a client asks for.
func (s *session) openTerminal(payload []byte) error {
	var p struct {
		Term                      string
		Cols, Rows, Width, Height uint32
		Modes                     string
	}
	if err := ssh.Unmarshal(payload, &p); err != nil {
		return err
	}
	master, name, err := newTerminal()
	if err != nil {
		return err
	}
	s.env = append(s.env, "TERM="+p.Term)
	s.mu.Lock()
	s.tty, s.name = master, name
	s.mu.Unlock()
	s.resize(p.Cols, p.Rows)
	return nil
}

func (s *session) resize(cols, rows uint32) {
	if t := s.terminal(); t != nil {
		_ = control(t, func(fd int) error { // closed: nobody looks
			return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(cols)})
		})
	}
}

// control does something with a file's descriptor. File.Fd would make its reads wait without end.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var fault error
	return errors.Join(raw.Control(func(fd uintptr) { fault = do(int(fd)) }), fault)
}

// loginShell is what the image's own files say of a user; empty: nothing.
func loginShell(uid string) string {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == uid {
			if _, err := os.Stat(f[6]); err == nil {
				return f[6]
			}
		}
	}
	return ""
}
