package limit

import (
	"net"
	"testing"
	"time"
)

func pipe(t *testing.T) net.Conn {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a
}

func TestConnsOfAUser(t *testing.T) {
	t.Parallel()
	var s Conns
	a, b, c := pipe(t), pipe(t), pipe(t)
	if !s.AddUser(a, 7, 2) || !s.AddUser(b, 7, 2) || s.AddUser(c, 7, 2) {
		t.Error("two of three are to be let in")
	}
	if !s.AddUser(c, 8, 2) {
		t.Error("another user was refused")
	}
	s.Remove(a)
	s.Remove(a)
	if !s.AddUser(a, 7, 2) || s.Len() != 3 {
		t.Errorf("%d connections", s.Len())
	}
}

// Connections that show no identity make room for later ones; those that did are left alone, and young ones too.
func TestConnsOfAnAddress(t *testing.T) {
	t.Parallel()
	var s Conns
	old, known, young, late := pipe(t), pipe(t), pipe(t), pipe(t)
	for _, c := range []net.Conn{known, old} {
		if cut, ok := s.AddAddress(c, "a", 2, start); cut != nil || !ok {
			t.Fatal("within the limit")
		}
	}
	s.Known(WithConn(t.Context(), known))
	if cut, ok := s.AddAddress(young, "a", 2, start.Add(time.Minute)); cut != nil || !ok {
		t.Error("one that is known was counted as unknown")
	}
	if cut, ok := s.AddAddress(late, "a", 2, start.Add(time.Minute)); cut != old || !ok {
		t.Error("the oldest one did not make room")
	}
	if _, ok := s.AddAddress(old, "a", 2, start.Add(time.Minute)); ok {
		t.Error("a connection that is being set up was cut")
	}
	if _, ok := s.AddAddress(old, "b", 2, start.Add(time.Minute)); !ok {
		t.Error("another address was refused")
	}
	for _, c := range []net.Conn{old, known, young, late} {
		s.Remove(c)
	}
	if s.Len() != 0 || len(s.addrs) != 0 {
		t.Errorf("%d connections and %d addresses are left", s.Len(), len(s.addrs))
	}
}
