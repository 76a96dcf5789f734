package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"time"

	"bireme.dev/bireme/internal/wire/direct"
)

// streamed is how much output one srun carries in the rows of streams.
const streamed = 1 << 30

// line is what labels are put before; with its end it divides streamed.
const line = "a line as programs print them: sixty-three bytes and a newline."

// moved is what it took to move streamed bytes.
type moved struct {
	wall time.Duration
	cpu  time.Duration
}

func (m moved) rate() float64 { return streamed / m.wall.Seconds() / 1e6 }

func (m moved) text() string {
	return fmt.Sprintf("%.0f MB/s, %.2f CPU s/GB", m.rate(), m.cpu.Seconds()/(streamed/1e9))
}

// streams measures srun's output: directly from the node, by the server, and with labels, beside a pipe and a TLS
// connection over loopback that carry the same bytes in this very run.
func (s *suite) streams(ctx context.Context) error {
	pipe, err := pipeLimit(ctx)
	if err != nil {
		return err
	}
	secured, err := tlsLimit(ctx)
	if err != nil {
		return err
	}
	s.add(row{what: "head of /dev/zero by a pipe", value: pipe.text()})
	s.add(row{what: "head of /dev/zero by TLS over loopback", value: secured.text()})
	cl, err := s.up(ctx, nil)
	if err != nil {
		return err
	}
	defer cl.down()
	for _, way := range []struct {
		what, floor string
		env         []string
		args        []string
	}{
		{"srun output, directly", "200 MB/s", nil, nil},
		{"srun output, by the server", "50 MB/s", []string{"BIREME_DIRECT=off"}, nil},
		{"srun output of lines, directly, with labels", "", nil, []string{"--label"}},
	} {
		argv := append(way.args, "head", "-c", strconv.Itoa(streamed), "/dev/zero")
		want := int64(streamed)
		if len(way.args) > 0 {
			argv = append(way.args, "sh", "-c", fmt.Sprintf("yes '%s' | head -c %d", line, streamed))
			want = streamed + int64(len("0: "))*(streamed/int64(len(line)+1))
		}
		cmd := cl.command("srun", argv...)
		cmd.Env = append(cmd.Env, way.env...)
		before := cl.cpu()
		wait := s.profile(cl, "stream", 3*time.Second)
		m, n, err := drain(cmd)
		wait()
		if err != nil {
			return fmt.Errorf("%s: %w", way.what, err)
		}
		if n != want {
			return fmt.Errorf("%s: %d bytes of %d came", way.what, n, want)
		}
		sp := cl.cpu().sub(before)
		srun := m.cpu
		m.cpu += sp.total()
		s.add(row{
			what: way.what, value: m.text(), limit: secured.text(),
			ratio: fmt.Sprintf("%.2f", m.rate()/secured.rate()), budget: way.floor,
		})
		s.add(row{
			what: "  CPU s/GB",
			value: fmt.Sprintf("srun %.2f, server %.2f, agent %.2f, keeper %.2f, the task %.2f", perGB(srun),
				perGB(sp.server), perGB(sp.agents), perGB(sp.keepers), perGB(sp.jobs)),
		})
	}
	return nil
}

func perGB(d time.Duration) float64 { return d.Seconds() / (streamed / 1e9) }

// drain runs a command and counts what it prints. The time is until its end.
func drain(cmd *exec.Cmd) (moved, int64, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return moved{}, 0, err
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return moved{}, 0, err
	}
	buf := make([]byte, 256<<10)
	var n int64
	for {
		k, err := out.Read(buf)
		n += int64(k)
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return moved{}, n, fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	return moved{time.Since(began), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}, n, nil
}

func pipeLimit(ctx context.Context) (moved, error) {
	before := selfCPU()
	m, n, err := drain(exec.CommandContext(ctx, "head", "-c", strconv.Itoa(streamed), "/dev/zero"))
	if err == nil && n != streamed {
		err = fmt.Errorf("head: %d bytes of %d came", n, streamed)
	}
	m.cpu = selfCPU() - before
	return m, err
}

// tlsLimit sends the bytes of a pipe over loopback as a node sends them to srun: the same kind of certificate and
// cipher.
func tlsLimit(ctx context.Context) (moved, error) {
	cfg, _, err := direct.New()
	if err != nil {
		return moved{}, err
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		return moved{}, err
	}
	defer l.Close()
	before, began := selfCPU(), time.Now()
	sent := make(chan error, 1)
	go func() { sent <- sendHead(ctx, l.Addr().String()) }()
	c, err := l.Accept()
	if err != nil {
		return moved{}, err
	}
	defer c.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 64<<10))
	if err = errors.Join(err, <-sent); err == nil && n != streamed {
		err = fmt.Errorf("TLS: %d bytes of %d came", n, streamed)
	}
	return moved{time.Since(began), selfCPU() - before}, err
}

func sendHead(ctx context.Context, addr string) error {
	c, err := (&tls.Dialer{NetDialer: &net.Dialer{}, Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(
		ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	cmd := exec.CommandContext(ctx, "head", "-c", strconv.Itoa(streamed), "/dev/zero")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{c}, struct{ io.Reader }{out}, make([]byte, 64<<10))
	return errors.Join(err, cmd.Wait())
}
