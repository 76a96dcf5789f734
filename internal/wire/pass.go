package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxPassed bounds the open files that wait to be taken, so that a confused peer cannot fill our table.
const maxPassed = 32

// PassConn carries frames and open files over a unix socket: a job's output is the very file the keeper opened, also
// for processes inside a container, and nobody copies it.
type PassConn struct {
	*Reader
	in  *passReader
	mu  sync.Mutex // of writing
	raw *net.UnixConn
}

// NewPassConn makes a PassConn that owns c.
func NewPassConn(c *net.UnixConn) *PassConn {
	in := &passReader{c: c}
	return &PassConn{Reader: NewReader(in), in: in, raw: c}
}

// Close ends the stream and closes what was passed and not taken.
func (c *PassConn) Close() error {
	for _, f := range c.in.take(maxPassed) {
		f.Close()
	}
	return c.raw.Close()
}

// Send writes a frame with open files. They stay the caller's.
func (c *PassConn) Send(t Type, header any, files []*os.File, payload ...[]byte) error {
	b, err := AppendFrame(nil, t, header, payload...)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(files) == 0 {
		_, err = c.raw.Write(b)
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := c.raw.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	if err == nil && n < len(b) {
		_, err = c.raw.Write(b[n:])
	}
	return err
}

// Files takes n open files that came with the frame just read, or before it.
func (c *PassConn) Files(n int) ([]*os.File, error) {
	list := c.in.take(n)
	if len(list) < n {
		for _, f := range list {
			f.Close()
		}
		return nil, fmt.Errorf("%d open files came with a frame that needs %d: %w", len(list), n, ErrFrame)
	}
	return list, nil
}

// passReader reads the bytes and keeps the files.
type passReader struct {
	c     *net.UnixConn
	mu    sync.Mutex
	files []*os.File
}

func (r *passReader) Read(b []byte) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4*maxPassed))
	n, oobn, _, _, err := r.c.ReadMsgUnix(b, oob)
	n = max(n, 0) // of a peer that is gone it says -1
	if oobn > 0 {
		if fault := r.keep(oob[:oobn]); fault != nil {
			return n, fault
		}
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (r *passReader) keep(oob []byte) error {
	list, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range list {
		fds, err := unix.ParseUnixRights(&list[i])
		if err != nil {
			return err
		}
		for _, fd := range fds {
			r.files = append(r.files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if len(r.files) > maxPassed {
		return errors.New("more open files were passed than anybody takes")
	}
	return nil
}

func (r *passReader) take(n int) []*os.File {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = min(n, len(r.files))
	list := r.files[:n:n]
	r.files = r.files[n:]
	return list
}
