package sshdoor

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Bounds of a step's stream.
const (
	maxHeld  = 64       // frames of input that the node has not confirmed
	maxInput = 64 << 10 // bytes of one
	maxWords = 1 << 10  // of what the program says on its standard error
)

// stepStream is the standard input and output of a step with one task as a connection. Input is kept until the node has
// it, so that an agent may be started again meanwhile.
type stepStream struct {
	conn *wire.Conn

	write sync.Mutex // held from where a frame gets its number until it is sent

	mu    sync.Mutex
	room  sync.Cond
	seq   int64
	kept  []inputFrame
	words []byte // from standard error
	end   error  // set when the stream is over

	rest []byte // of the frame being read; of the reader alone
	last wire.Frame
}

type inputFrame struct {
	seq  int64
	data []byte
}

func newStepStream(c *wire.Conn) *stepStream {
	s := &stepStream{conn: c}
	s.room.L = &s.mu
	return s
}

// Read gives what the program writes.
func (s *stepStream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		s.last.Free()
		s.last = wire.Frame{}
		f, err := s.conn.Next()
		if err != nil {
			return 0, s.over(err)
		}
		if err := s.take(f); err != nil {
			return 0, s.over(err)
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// take takes a frame of the node.
func (s *stepStream) take(f wire.Frame) error {
	switch f.Type {
	case wire.TypeIO:
		var h wire.IOHeader
		if err := f.Decode(&h); err != nil {
			return err
		}
		switch {
		case h.FD == 1:
			s.rest, s.last = f.Payload, f
			return nil
		case h.FD == 2:
			s.mu.Lock()
			s.words = append(s.words, f.Payload[:min(len(f.Payload), maxWords-len(s.words))]...)
			s.mu.Unlock()
		}
	case wire.TypeInputAt:
		var at wire.InputAt
		if err := f.Decode(&at); err != nil {
			return err
		}
		s.confirmed(at)
	case wire.TypeStepExit:
		var x wire.TaskExit
		if err := f.Decode(&x); err != nil {
			return err
		}
		if x.Message != "" {
			return core.Errorf(core.Unavailable, "%s", x.Message)
		}
		return io.EOF
	}
	f.Free()
	return nil
}

// confirmed lets go of input that the node has, and sends what it lost with its agent.
func (s *stepStream) confirmed(at wire.InputAt) {
	s.mu.Lock()
	for len(s.kept) > 0 && s.kept[0].seq <= at.Seq {
		s.kept = s.kept[1:]
	}
	again := at.Again && len(s.kept) > 0
	s.room.Broadcast()
	s.mu.Unlock()
	if again {
		go s.sendAgain() // the reader must not wait for it; ends with the connection
	}
}

func (s *stepStream) sendAgain() {
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	list := append([]inputFrame(nil), s.kept...)
	s.mu.Unlock()
	for _, f := range list {
		if s.send(f) != nil {
			return // the reader sees it
		}
	}
}

func (s *stepStream) send(f inputFrame) error {
	return s.conn.Send(wire.TypeInput, wire.IOHeader{Rank: -1, Seq: f.seq}, f.data)
}

// Write sends input to the program. Who waits for the node to take some does not hold up sendAgain.
func (s *stepStream) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		data := append([]byte(nil), p[:min(len(p), maxInput)]...) // kept until the node has it
		if err := s.put(data); err != nil {
			return n, err
		}
		n, p = n+len(data), p[len(data):]
	}
	return n, nil
}

func (s *stepStream) put(data []byte) error {
	s.mu.Lock()
	for len(s.kept) >= maxHeld && s.end == nil {
		s.room.Wait()
	}
	end := s.end
	s.mu.Unlock()
	if end != nil {
		return end
	}
	s.write.Lock()
	defer s.write.Unlock()
	s.mu.Lock()
	s.seq++
	f := inputFrame{s.seq, data}
	s.kept = append(s.kept, f)
	s.mu.Unlock()
	return s.send(f)
}

// over notes why the stream ended.
func (s *stepStream) over(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end == nil {
		s.end = err
		s.room.Broadcast()
	}
	return s.end
}

// why words a failure with what the program or its node said of it.
func (s *stepStream) why(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var told *core.Error
	switch {
	case errors.As(s.end, &told):
		return told
	case len(s.words) > 0:
		return core.Errorf(core.Unavailable, "%s", s.words)
	}
	return err
}

// Close ends the stream, and with it the step.
func (s *stepStream) Close() error {
	_ = s.over(net.ErrClosed)
	return s.conn.Close()
}

func (s *stepStream) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "step", Net: "unix"} }
func (s *stepStream) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *stepStream) SetDeadline(time.Time) error      { return nil }
func (s *stepStream) SetReadDeadline(time.Time) error  { return nil }
func (s *stepStream) SetWriteDeadline(time.Time) error { return nil }
