package x11

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// tunnel is the way to one node of a job: a step of it that speaks SSH on its standard streams.
type tunnel struct {
	step *exec.Cmd
	in   io.Closer
	c    *ssh.Client
}

// open starts the step on the node-th node of a job. The cluster has authenticated both ends.
func open(job string, node int) (*tunnel, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	step := exec.Command(self, "--jobid="+job, "--overlap", "--quiet", "--nodes=1", "--ntasks=1", "--overcommit",
		"--job-name="+core.StepSSH, "--relative="+strconv.Itoa(node), "--export=NONE", "--chdir=/", "--mpi=none",
		"--unbuffered", wire.InitInside, "sshd")
	step.Args[0] = "srun"
	step.Stderr = os.Stderr
	in, err := step.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := step.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := step.Start(); err != nil {
		return nil, err
	}
	conn, channels, requests, err := ssh.NewClientConn(&stdio{out, in}, "job", &ssh.ClientConfig{
		User: "root", HostKeyCallback: ssh.InsecureIgnoreHostKey(), // the stream is the cluster's own
	})
	if err != nil {
		_ = in.Close()
		return nil, errors.Join(fmt.Errorf("node %d of job %s: %w", node, job, err), step.Wait())
	}
	return &tunnel{step: step, in: in, c: ssh.NewClient(conn, channels, requests)}, nil
}

func (t *tunnel) close() {
	_ = t.c.Close()
	_ = t.in.Close()
	_ = t.step.Wait()
}

// run runs a command on the node, with an input.
func (t *tunnel) run(command string, input []byte) error {
	s, err := t.c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	s.Stdin = bytes.NewReader(input)
	if text, err := s.CombinedOutput(command); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(text))
	}
	return nil
}

// stdio is a step's streams as a connection.
type stdio struct {
	io.ReadCloser
	in io.WriteCloser
}

func (s *stdio) Write(b []byte) (int, error) { return s.in.Write(b) }
func (s *stdio) Close() error                { return errors.Join(s.in.Close(), s.ReadCloser.Close()) }

func (s *stdio) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "step", Net: "unix"} }
func (s *stdio) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *stdio) SetDeadline(time.Time) error      { return nil }
func (s *stdio) SetReadDeadline(time.Time) error  { return nil }
func (s *stdio) SetWriteDeadline(time.Time) error { return nil }

// Numbers of displays on nodes, as Slurm's.
const (
	firstDisplay = 20
	lastDisplay  = 99
)

// listen opens the same display on all nodes: their tasks have one environment.
func listen(nodes []*tunnel) (int, []net.Listener, error) {
	var start [1]byte
	_, _ = rand.Read(start[:])
	const count = lastDisplay - firstDisplay + 1
	var last error
	for i := range count {
		n := firstDisplay + (int(start[0])+i)%count
		var list []net.Listener
		for _, t := range nodes {
			l, err := t.c.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(6000+n)))
			if err != nil {
				last = err
				break
			}
			list = append(list, l)
		}
		if len(list) == len(nodes) {
			return n, list, nil
		}
		for _, l := range list {
			_ = l.Close()
		}
	}
	return 0, nil, fmt.Errorf("no number of a display is free on all nodes: %w", last)
}

// place is a new file name for a cookie, the same on all nodes.
func place() string {
	var b [12]byte
	_, _ = rand.Read(b[:])
	return "/tmp/.Xauthority-" + hex.EncodeToString(b[:])
}
