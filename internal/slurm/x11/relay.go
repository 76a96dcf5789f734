package x11

import (
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// greetTime is how long a client may take to say who it is.
const greetTime = 30 * time.Second

// maxProof bounds name and data of a client's proof.
const maxProof = 1024

// relay joins a client on a node to the display, if it has the cookie made for the nodes.
func relay(client io.ReadWriteCloser, made, real []byte, dial func() (net.Conn, error)) error {
	defer client.Close()
	late := time.AfterFunc(greetTime, func() { _ = client.Close() })
	hello, err := greet(client, made, real)
	late.Stop()
	if err != nil {
		return err
	}
	server, err := dial()
	if err != nil {
		return err
	}
	defer server.Close()
	if _, err := server.Write(hello); err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { pour(server, client) })
	both.Go(func() { pour(client, server) })
	both.Wait()
	return nil
}

// pour copies until one side ends, and says so to the other.
func pour(to io.WriteCloser, from io.Reader) {
	_, _ = io.Copy(to, from) // an end is an end
	if h, ok := to.(interface{ CloseWrite() error }); ok {
		_ = h.CloseWrite()
	} else {
		_ = to.Close()
	}
}

// greet reads the first message of an X client and gives what the display gets in its place: byte order, version, and
// lengths of name and data of a proof, each padded to four bytes.
func greet(client io.Reader, made, real []byte) ([]byte, error) {
	head := make([]byte, 12)
	if _, err := io.ReadFull(client, head); err != nil {
		return nil, err
	}
	var order binary.ByteOrder
	switch head[0] {
	case 'B':
		order = binary.BigEndian
	case 'l':
		order = binary.LittleEndian
	default:
		return nil, errors.New("this is no X client")
	}
	n, m := int(order.Uint16(head[6:])), int(order.Uint16(head[8:]))
	if n > maxProof || m > maxProof {
		return nil, errors.New("a proof that is too long")
	}
	body := make([]byte, pad(n)+pad(m))
	if _, err := io.ReadFull(client, body); err != nil {
		return nil, err
	}
	name, data := string(body[:n]), body[pad(n):pad(n)+m]
	if name != cookieName || subtle.ConstantTimeCompare(data, made) != 1 {
		return nil, errors.New("a client without the cookie of the job")
	}
	text := cookieName
	if real == nil {
		text = ""
	}
	order.PutUint16(head[6:], uint16(len(text)))
	order.PutUint16(head[8:], uint16(len(real)))
	out := append(head, make([]byte, pad(len(text))+pad(len(real)))...)
	copy(out[12:], text)
	copy(out[12+pad(len(text)):], real)
	return out, nil
}

func pad(n int) int { return (n + 3) &^ 3 }
