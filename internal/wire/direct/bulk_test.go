package direct

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// counted counts the writes that reach the socket.
type counted struct {
	net.Conn
	writes int
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes++
	return c.Conn.Write(b)
}

// TestBulk sends pieces of any size; they come whole, each in as few writes as its size allows, and the end is seen.
func TestBulk(t *testing.T) {
	t.Parallel()
	cfg, _, err := New()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan []byte, 1)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		c := Server(raw, cfg)
		defer c.Close()
		b, err := io.ReadAll(c)
		if err != nil {
			t.Errorf("the end was not told: %v", err)
		}
		got <- b
	}()
	raw, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	socket := &counted{Conn: raw}
	client := cfg.Clone()
	client.InsecureSkipVerify = true
	c := Client(socket, client)
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var want []byte
	for _, size := range []int{1, 100, 16 << 10, 16<<10 + 1, 128 << 10, 300 << 10, 1 << 20, 5} {
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		before := socket.writes
		if n, err := c.Write(b); err != nil || n != size {
			t.Fatalf("write of %d: %d, %v", size, n, err)
		}
		// The first records of a connection are small, with a header and a tag of 22 bytes each.
		if n := socket.writes - before; n > 1+(size+size/50)/(gatherMost-17<<10) {
			t.Errorf("%d bytes took %d writes", size, n)
		}
		want = append(want, b...)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(<-got, want) {
		t.Error("other bytes came than were sent")
	}
}
