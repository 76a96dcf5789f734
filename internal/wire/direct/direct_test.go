package direct

import (
	"crypto/tls"
	"net"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

func TestDial(t *testing.T) {
	t.Parallel()
	cfg, print, err := New()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hellos := make(chan wire.DirectHello, 2)
	go func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			c := wire.NewConn(tls.Server(raw, cfg))
			if f, err := c.Next(); err == nil {
				var h wire.DirectHello
				_ = f.Decode(&h)
				hellos <- h
			}
			_ = c.Close()
		}
	}()
	good := &wire.Direct{Addrs: []string{"127.0.0.1:1", l.Addr().String()}, Print: print, Secret: "s"}
	c, err := Dial(t.Context(), good, "n1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if h := <-hellos; h.Secret != "s" || h.Node != "n1" {
		t.Errorf("hello %+v", h)
	}
	bad := *good
	bad.Print = "00" + print[2:]
	if c, err := Dial(t.Context(), &bad, "n1"); err == nil {
		c.Close()
		t.Error("somebody else's certificate was taken for the caller's")
	}
	if c, err := Dial(t.Context(), &wire.Direct{Addrs: []string{"127.0.0.1:1"}}, "n1"); err == nil {
		c.Close()
		t.Error("nobody was reached")
	}
}
