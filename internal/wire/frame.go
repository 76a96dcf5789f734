package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Type says what a frame means. Numbers 1–63 are agent ↔ keeper, 64 and up agent ↔ server.
type Type uint8

// MaxFrame bounds one frame, so that a confused peer cannot make us allocate without end.
const MaxFrame = 64 << 20

// A frame on the wire is [u32 length of what follows][u8 type][u32 header length][header][payload], big endian.
const (
	lengthSize = 4
	prefixSize = 1 + 4
)

// ErrFrame is wrapped by every error about a malformed frame. The stream cannot be read on after it.
var ErrFrame = errors.New("malformed frame")

// Frame is one message. Header and Payload belong to the receiver.
type Frame struct {
	Type    Type
	Header  []byte
	Payload []byte

	body []byte // what both are in
}

// Decode reads the header into v.
func (f Frame) Decode(v any) error {
	if err := json.Unmarshal(f.Header, v); err != nil {
		return fmt.Errorf("header of frame type %d: %w: %w", f.Type, ErrFrame, err)
	}
	return nil
}

// With decodes the header of a frame and hands it on.
func With[M any](f Frame, do func(M)) error {
	var m M
	if err := f.Decode(&m); err != nil {
		return err
	}
	do(m)
	return nil
}

// Reader takes frames from a stream. It is for one goroutine.
type Reader struct {
	br   *bufio.Reader
	most uint32 // bytes of a frame; 0: MaxFrame
}

// NewReader makes a Reader.
func NewReader(r io.Reader) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, 64<<10)}
}

// NewSmallReader makes a Reader of a stream that says little, of which there are thousands; what is larger than its
// buffer is read past it.
func NewSmallReader(r io.Reader) *Reader {
	return &Reader{br: bufio.NewReaderSize(r, 4<<10)}
}

// Bound refuses frames of more than n bytes from now on: of a peer that is not trusted.
func (r *Reader) Bound(n uint32) { r.most = n }

// Next waits for the next frame. io.EOF means that the stream ended between two frames.
func (r *Reader) Next() (Frame, error) {
	var head [lengthSize + prefixSize]byte
	if _, err := io.ReadFull(r.br, head[:lengthSize]); err != nil {
		return Frame{}, err
	}
	total := binary.BigEndian.Uint32(head[:])
	if total < prefixSize || total > MaxFrame || r.most > 0 && total > r.most {
		return Frame{}, fmt.Errorf("length %d: %w", total, ErrFrame)
	}
	if _, err := io.ReadFull(r.br, head[lengthSize:]); err != nil {
		return Frame{}, unexpected(err)
	}
	hlen := binary.BigEndian.Uint32(head[lengthSize+1:])
	if hlen > total-prefixSize {
		return Frame{}, fmt.Errorf("header length %d of %d: %w", hlen, total, ErrFrame)
	}
	body, err := r.body(int(total - prefixSize))
	if err != nil {
		return Frame{}, unexpected(err)
	}
	return Frame{Type: Type(head[lengthSize]), Header: body[:hlen:hlen], Payload: body[hlen:], body: body}, nil
}

// Buffered returns how many bytes wait in the reader: zero means that the peer has no more for us at this moment.
func (r *Reader) Buffered() int { return r.br.Buffered() }

// body reads n bytes. Beyond a megabyte it grows with what really arrives, not with what was announced.
func (r *Reader) body(n int) ([]byte, error) {
	const step = 1 << 20
	if n <= step {
		b := newBody(n)
		_, err := io.ReadFull(r.br, b)
		return b, err
	}
	b := make([]byte, 0, step)
	for len(b) < n {
		at, more := len(b), min(step, n-len(b))
		b = append(b, make([]byte, more)...)
		if _, err := io.ReadFull(r.br, b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// AppendFrame adds an encoded frame to dst. The payload is the concatenation of its parts.
func AppendFrame(dst []byte, t Type, header any, payload ...[]byte) ([]byte, error) {
	dst, err := appendHead(dst, t, header, sizeOf(payload))
	if err != nil {
		return dst, err
	}
	for _, p := range payload {
		dst = append(dst, p...)
	}
	return dst, nil
}

func sizeOf(payload [][]byte) int {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	return n
}

// appendHead adds all of a frame but its payload.
func appendHead(dst []byte, t Type, header any, payload int) ([]byte, error) {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, byte(t), 0, 0, 0, 0)
	switch h := header.(type) {
	case nil:
		dst = append(dst, '{', '}')
	case json.RawMessage: // a header passed on as it came
		dst = append(dst, h...)
	default:
		b, err := json.Marshal(header)
		if err != nil {
			return dst[:start], fmt.Errorf("header of frame type %d: %w", t, err)
		}
		dst = append(dst, b...)
	}
	hlen := len(dst) - start - lengthSize - prefixSize
	size := prefixSize + hlen + payload
	if size > MaxFrame {
		return dst[:start], fmt.Errorf("frame type %d of %d bytes is over the limit of %d: %w", t, size, MaxFrame, ErrFrame)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(size))
	binary.BigEndian.PutUint32(dst[start+lengthSize+1:], uint32(hlen))
	return dst, nil
}

// Writer puts frames on a stream. Any goroutine may Send; frames that come while a write is under way leave together in
// the next one, so a burst costs few system calls and a lone frame leaves at once.
type Writer struct {
	w      io.Writer
	socket bool // several places are written from in one system call

	mu      sync.Mutex
	room    sync.Cond // waits for pending to shrink
	pending []byte
	spare   []byte
	writing bool
	err     error
}

// Bounds of a Writer: senders wait above maxPending; a sender that has written rounds batches for others hands the
// rest to a goroutine of its own, so that nobody is held by a busy stream; larger buffers are not kept; a payload
// from uncopied on is written to a socket from where it lies when nothing else is being written.
const (
	maxPending = 4 << 20
	maxSpare   = 256 << 10
	maxRounds  = 8
	uncopied   = 16 << 10
)

// NewWriter makes a Writer on w, which is used by one goroutine at a time.
func NewWriter(w io.Writer) *Writer {
	wr := &Writer{w: w}
	switch w.(type) {
	case *net.UnixConn, *net.TCPConn:
		wr.socket = true
	}
	wr.room.L = &wr.mu
	return wr
}

// Send queues a frame and sees that it is written. It returns the error that broke the stream, if one did; a nil
// error does not mean that the peer has it.
func (w *Writer) Send(t Type, header any, payload ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && len(w.pending) > maxPending {
		w.room.Wait()
	}
	if w.err != nil {
		return w.err
	}
	var err error
	if size := sizeOf(payload); w.socket && size >= uncopied && !w.writing {
		if w.pending, err = appendHead(w.pending, t, header, size); err != nil {
			return err
		}
		w.writing = true
		w.write(payload...)
		w.flush(maxRounds)
		return w.err
	}
	if w.pending, err = AppendFrame(w.pending, t, header, payload...); err != nil {
		return err
	}
	if w.writing {
		return nil
	}
	w.writing = true
	w.flush(maxRounds)
	return w.err
}

// write writes what is pending and then more; w.mu is held at entry and exit, not during the writes.
func (w *Writer) write(more ...[]byte) {
	batch := w.pending
	w.pending, w.spare = w.spare[:0], nil
	w.mu.Unlock()
	var err error
	if len(more) == 0 {
		_, err = w.w.Write(batch)
	} else {
		all := append(net.Buffers{batch}, more...)
		_, err = all.WriteTo(w.w) // one system call on a socket
	}
	w.mu.Lock()
	if err != nil {
		w.err = err
	}
	if cap(batch) <= maxSpare {
		w.spare = batch
	}
	w.room.Broadcast()
}

// flush writes what is pending; w.mu is held at entry and exit, not during the writes.
func (w *Writer) flush(rounds int) {
	for len(w.pending) > 0 && w.err == nil {
		if rounds == 0 {
			go func() { // ends when the stream has caught up or broke
				w.mu.Lock()
				defer w.mu.Unlock()
				w.flush(-1)
			}()
			return
		}
		rounds--
		w.write()
	}
	w.writing = false
	w.room.Broadcast()
}

// drain waits until all that was given to Send is written, or the stream broke.
func (w *Writer) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.err == nil && w.writing {
		w.room.Wait()
	}
}

// Conn is a Reader and a Writer on one stream.
type Conn struct {
	*Reader
	*Writer
	c io.ReadWriteCloser
}

// NewConn makes a Conn that owns c.
func NewConn(c io.ReadWriteCloser) *Conn {
	return &Conn{Reader: NewReader(c), Writer: NewWriter(c), c: c}
}

// NewSmallConn is NewConn of a stream that says little.
func NewSmallConn(c io.ReadWriteCloser) *Conn {
	return &Conn{Reader: NewSmallReader(c), Writer: NewWriter(c), c: c}
}

// Close ends the stream; senders and the reader get an error.
func (c *Conn) Close() error { return c.c.Close() }

// Finish closes the stream once all that was given to Send is written, or could not be for that long. A Send that found
// another goroutine writing has only queued its frame: Close would throw that away.
func (c *Conn) Finish(within time.Duration) error {
	late := time.AfterFunc(within, func() { _ = c.c.Close() }) // a write that hangs breaks
	defer late.Stop()
	c.drain()
	return c.c.Close()
}
