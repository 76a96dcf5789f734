package initd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/wire"
)

// runCommand is the command by which the first container has the job's program run in another, which knows that itself.
const runCommand = self + " run"

// jobd is what the SSH server beside a job is told, on its standard input.
type jobd struct {
	Gang   *wire.Gang `json:"gang"`
	Argv   []string   `json:"argv"`
	Script []byte     `json:"script,omitempty"` // Argv are its arguments
	// Terminal: the program runs on one.
	Terminal bool `json:"terminal,omitempty"`

	mu        sync.Mutex
	terminals map[*terminal]bool // that programs run on
}

// runs notes a terminal on which the job's program runs, or that it does no more.
func (d *jobd) runs(t *terminal, now bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.terminals == nil {
		d.terminals = map[*terminal]bool{}
	}
	if delete(d.terminals, t); now {
		d.terminals[t] = true
	}
}

// interrupt types Ctrl+C on the terminals of the job's program, whenever somebody asks for its end.
func (d *jobd) interrupt(told <-chan os.Signal) {
	for sig := range told {
		if !stops(sig.(unix.Signal)) {
			continue
		}
		d.mu.Lock()
		for t := range d.terminals {
			t.interrupt()
		}
		d.mu.Unlock()
	}
}

// JobSSH serves SSH to the other containers of the job. Its standard input says what to serve, its descriptor 3 is
// where they dial. It runs as the job's user and ends with the container.
func JobSSH(in io.Reader) error {
	d := new(jobd)
	if err := json.NewDecoder(in).Decode(d); err != nil {
		return err
	}
	f := os.NewFile(3, "listener")
	l, err := net.FileListener(f)
	if err != nil {
		return err
	}
	f.Close()
	host, err := gangSigner(d.Gang.Seed, keyHost)
	if err != nil {
		return err
	}
	caller, err := gangSigner(d.Gang.Seed, keyClient)
	if err != nil {
		return err
	}
	want := caller.PublicKey().Marshal()
	cfg := &ssh.ServerConfig{
		ServerVersion: "SSH-2.0-bireme",
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if !bytes.Equal(key.Marshal(), want) {
				return nil, errors.New("not a key of this job")
			}
			return nil, nil
		},
	}
	cfg.AddHostKey(host)
	// What is meant for the job's programs is not meant for us: we end with the container. Caught, not ignored:
	// children would inherit that.
	told := make(chan os.Signal, 4)
	signal.Notify(told, unix.SIGHUP, unix.SIGTERM, unix.SIGINT, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2)
	go d.interrupt(told) // as long as we are there
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() { // until the caller is through, or the container ends
			_ = serveSSH(c, cfg, d) // the caller sees it too
		}()
	}
}

// program prepares the job's own program.
func (d *jobd) program() (*exec.Cmd, func(), error) {
	argv, done := d.Argv, func() {}
	var extra []*os.File
	if len(d.Script) > 0 {
		var inFile []byte
		if argv, inFile = commandLine(d.Script, argv, d.Terminal); inFile != nil {
			f, err := memory(inFile)
			if err != nil {
				return nil, done, err
			}
			done = func() { f.Close() }
			extra = []*os.File{f}
		}
	}
	if len(argv) == 0 {
		return nil, done, errors.New("nothing to run: the image names no program and the job has none")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = extra
	return cmd, done, nil
}

// enlist makes the container one of its job's several: what its programs need to reach the others, and a server for
// those.
func (s *server) enlist(r wire.Run, script, env []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.place(r, env)
	if err != nil {
		return err
	}
	if s.gang, err = gangFiles(r.Gang, p.id); err != nil {
		return err
	}
	p.vars = withGang(p.vars, s.gang)
	s.jobd, err = startJobd(r, script, p)
	return err
}

// startJobd starts the server beside the job.
func startJobd(r wire.Run, script []byte, p place) (pid int, err error) {
	l, err := listenGang(r.Gang)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	text, err := json.Marshal(&jobd{Gang: r.Gang, Argv: r.Argv, Script: script, Terminal: r.Terminal})
	if err != nil {
		return 0, err
	}
	in, err := memory(text)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	if _, err := in.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	door, err := l.File()
	if err != nil {
		return 0, err
	}
	defer door.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	return p.fork(running, []string{"bireme-init", "job-sshd"}, false,
		[]uintptr{in.Fd(), null.Fd(), null.Fd(), door.Fd()})
}

// asUser does something with the rights to files of a user, on a thread that ends with it.
func asUser(id identity, do func() error) (err error) {
	if os.Getuid() != 0 || id.ours() {
		return do()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked
		groups := append([]uint32{id.gid}, id.groups...)
		if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])),
			0); e != 0 {
			err = os.NewSyscallError("setgroups", e)
			return
		}
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(id.gid), 0, 0) // they tell what was before, not how it went
		_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(id.uid), 0, 0)
		err = do()
	}()
	<-done
	return err
}

// SSHCommand is our own ssh, for images that have none: to the containers of the same job, and nowhere else.
func SSHCommand(args []string) int {
	code, err := sshCommand(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ssh:", err)
	}
	return code
}

// exitSSH is how ssh ends that could not connect.
const exitSSH = 255

func sshCommand(args []string) (int, error) {
	noInput := false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		flag := args[0]
		args = args[1:]
		if flag == "--" {
			break
		}
		noInput = noInput || flag == "-n"
		if len(flag) == 2 && strings.Contains("BbcDEeFIiJLlmOopQRSWw", flag[1:]) && len(args) > 0 {
			args = args[1:] // its value means nothing between containers of one job
		}
	}
	if len(args) == 0 {
		return exitSSH, errors.New(
			"usage: ssh [OPTIONS] NODE|ADDRESS [COMMAND…]; the containers of this job are reached, and nothing else")
	}
	b, err := os.ReadFile(gangDir + "/gang")
	if err != nil {
		return exitSSH, err
	}
	g := new(wire.Gang)
	if err := json.Unmarshal(b, g); err != nil {
		return exitSSH, err
	}
	_, name, found := strings.Cut(args[0], "@")
	if !found {
		name = args[0]
	}
	for rank, p := range g.Peers {
		if name == string(p.Node) || name == p.Addr {
			return callPeer(g, rank, strings.Join(args[1:], " "), noInput)
		}
	}
	return exitSSH, fmt.Errorf("%s is no node of this job", name)
}

// callPeer runs a command in another container with our streams.
func callPeer(g *wire.Gang, rank int, command string, noInput bool) (int, error) {
	c, err := dialPeer(context.Background(), g, rank)
	if err != nil {
		return exitSSH, err
	}
	defer c.Close()
	s, err := c.NewSession()
	if err != nil {
		return exitSSH, err
	}
	s.Stdout, s.Stderr = os.Stdout, os.Stderr
	if !noInput {
		in, err := s.StdinPipe()
		if err != nil {
			return exitSSH, err
		}
		go func() { // ends with us
			_, _ = io.Copy(in, os.Stdin)
			_ = in.Close()
		}()
	}
	if command == "" {
		err = s.Shell()
	} else {
		err = s.Start(command)
	}
	if err != nil {
		return exitSSH, err
	}
	code, sig, err := exitOf(s.Wait())
	switch {
	case err != nil:
		return exitSSH, err
	case sig != 0:
		return 128 + sig, nil
	}
	return code, nil
}

// exitOf reads how a program in another container ended.
func exitOf(err error) (code, sig int, fault error) {
	var x *ssh.ExitError
	switch {
	case err == nil:
		return 0, 0, nil
	case errors.As(err, &x) && x.Signal() != "":
		return 0, int(unix.SignalNum("SIG" + x.Signal())), nil
	case errors.As(err, &x):
		return x.ExitStatus(), 0, nil
	}
	return 0, 0, err
}
