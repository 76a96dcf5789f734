package sshdoor

import (
	"bufio"
	"crypto/sha1" // RFC 6455 has it prove that the server speaks the protocol, nothing else
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// websocket is the server's end of a connection by RFC 6455 that sends binary messages and hears control frames.
type websocket struct {
	r *bufio.Reader

	mu     sync.Mutex
	w      io.Writer
	closed bool // our close frame is sent
}

// Frames: the first byte has FIN and the opcode, the second the mask bit and the length.
const (
	wsFIN    = 0x80
	wsMask   = 0x80
	wsBinary = 0x2
	wsClose  = 0x8
	wsPing   = 0x9
	wsPong   = 0xA

	frameRoom  = 10 // before a payload, for the longest head of an unmasked frame
	maxControl = 125
	maxHeard   = 1 << 20 // of a data frame of the client, which is thrown away
)

var errFrame = errors.New("malformed websocket frame")

// accept answers a handshake.
func (ws *websocket) accept(key string) error {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err := io.WriteString(ws.w, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: "+base64.StdEncoding.EncodeToString(sum[:])+"\r\n\r\n")
	return err
}

// send sends a binary message of the n bytes after the room for the head in buf.
func (ws *websocket) send(buf []byte, n int) error {
	return ws.frame(wsBinary, buf, n)
}

func (ws *websocket) frame(op byte, buf []byte, n int) error {
	var at int
	switch {
	case n < 126:
		at = frameRoom - 2
		buf[at+1] = byte(n)
	case n < 1<<16:
		at = frameRoom - 4
		buf[at+1] = 126
		binary.BigEndian.PutUint16(buf[at+2:], uint16(n))
	default:
		at = 0
		buf[at+1] = 127
		binary.BigEndian.PutUint64(buf[at+2:], uint64(n))
	}
	buf[at] = wsFIN | op
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.closed {
		return io.ErrClosedPipe
	}
	ws.closed = op == wsClose
	_, err := ws.w.Write(buf[at : frameRoom+n])
	return err
}

// close sends a close frame without a code, as dstack 0.22.5 does at the end of the output.
func (ws *websocket) close() error { return ws.frame(wsClose, make([]byte, frameRoom), 0) }

// listen answers the client's control frames until it says goodbye or the connection ends.
func (ws *websocket) listen() {
	for {
		op, data, err := ws.next()
		if err != nil {
			return
		}
		switch op {
		case wsClose:
			_ = ws.frame(wsClose, append(make([]byte, frameRoom), data...), len(data)) // it is the answer, or was sent before
			return
		case wsPing:
			if ws.frame(wsPong, append(make([]byte, frameRoom), data...), len(data)) != nil {
				return
			}
		}
	}
}

// next reads a frame; the payload of one that carries data is thrown away.
func (ws *websocket) next() (op byte, data []byte, err error) {
	var head [2]byte
	if _, err = io.ReadFull(ws.r, head[:]); err != nil {
		return 0, nil, err
	}
	op = head[0] & 0xF
	n := uint64(head[1] &^ wsMask)
	control := op >= wsClose
	if head[0]&0x70 != 0 || head[1]&wsMask == 0 || control && (n > maxControl || head[0]&wsFIN == 0) {
		return 0, nil, errFrame
	}
	var long [8]byte
	switch n {
	case 126:
		_, err = io.ReadFull(ws.r, long[6:])
	case 127:
		_, err = io.ReadFull(ws.r, long[:])
	}
	if n >= 126 {
		n = binary.BigEndian.Uint64(long[:])
	}
	var mask [4]byte
	if err == nil {
		_, err = io.ReadFull(ws.r, mask[:])
	}
	switch {
	case err != nil:
		return 0, nil, err
	case n > maxHeard:
		return 0, nil, errFrame
	case !control:
		_, err = io.CopyN(io.Discard, ws.r, int64(n))
		return op, nil, err
	}
	data = make([]byte, n)
	if _, err = io.ReadFull(ws.r, data); err != nil {
		return 0, nil, err
	}
	for i := range data {
		data[i] ^= mask[i%4]
	}
	return op, data, nil
}
