package client

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
)

// socketTrip makes calls over a local socket, each on a connection of its own. A connection costs less there than the
// two goroutines by which http.Transport keeps one, and a command such as sbatch makes one call in all.
type socketTrip struct {
	dialer *net.Dialer
	path   string
	plain  bool // no streams: dialPlain is enough
}

// dial opens a connection that may live long. cut ends what waits on it.
func (s *socketTrip) dial(ctx context.Context) (conn io.ReadWriteCloser, cut func(), err error) {
	c, err := s.dialer.DialContext(ctx, "unix", s.path)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkConn(c); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, func() { _ = c.Close() }, nil
}

// RoundTrip makes one call.
func (s *socketTrip) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	dial := s.dial
	if s.plain {
		dial = s.dialPlain
	}
	c, cut, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	b := &socketBody{c: c, stop: context.AfterFunc(ctx, cut)}
	w := bufio.NewWriterSize(c, 16<<10)
	sent := req.Write(w)
	if sent == nil {
		sent = w.Flush()
	}
	b.r = bufio.NewReader(c)
	// also after a failed write: a server that refuses a call need not read it all
	resp, err := http.ReadResponse(b.r, req)
	if err != nil {
		_ = b.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if sent != nil {
			err = sent
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		resp.Body = &socketStream{b}
		return resp, nil
	}
	b.body = resp.Body
	resp.Body = b
	return resp, nil
}

// socketBody is an answer's body; the connection ends with it.
type socketBody struct {
	c    io.ReadWriteCloser
	r    *bufio.Reader
	stop func() bool
	body io.ReadCloser
}

func (b *socketBody) Read(p []byte) (int, error) { return b.body.Read(p) }

func (b *socketBody) Close() error {
	b.stop()
	return b.c.Close()
}

// socketStream is a connection that was turned into a stream.
type socketStream struct{ *socketBody }

func (s *socketStream) Read(p []byte) (int, error)  { return s.r.Read(p) }
func (s *socketStream) Write(p []byte) (int, error) { return s.c.Write(p) }
