package limit

import (
	"container/list"
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Conns counts open connections: those of each user of the host at a local socket, and those of each address that have
// shown no identity yet. The zero Conns is empty and ready.
type Conns struct {
	mu    sync.Mutex
	conns map[net.Conn]*Conn
	uids  map[uint32]int
	addrs map[string]*list.List // of *Conn, the oldest first
}

// Conn is a connection that is counted.
type Conn struct {
	c     net.Conn
	uid   uint32
	addr  string        // empty: it is counted by its uid
	place *list.Element // among the unknown of its address
	since time.Time
	known atomic.Bool
}

// settle is how long a connection without an identity is safe from making room for others: what is being set up is not
// cut.
const settle = 2 * time.Second

type connKey struct{}

// WithConn leaves a connection in the context of its calls.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &connRef{c: c})
}

// connRef finds the entry of a connection, which is made after its context.
type connRef struct {
	c    net.Conn
	conn atomic.Pointer[Conn]
}

// Known says that who is at the other end of a call's connection has shown an identity.
func (s *Conns) Known(ctx context.Context) {
	ref, ok := ctx.Value(connKey{}).(*connRef)
	if !ok {
		return
	}
	k := ref.conn.Load()
	if k == nil {
		s.mu.Lock()
		k = s.conns[ref.c]
		s.mu.Unlock()
		if k == nil {
			return
		}
		ref.conn.Store(k)
	}
	if !k.known.Swap(true) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unlist(k)
	}
}

// AddUser counts a connection of a user of the host. It gives false when there are most of them already.
func (s *Conns) AddUser(c net.Conn, uid uint32, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uids == nil {
		s.uids = map[uint32]int{}
	}
	if most > 0 && s.uids[uid] >= most {
		return false
	}
	s.uids[uid]++
	s.enter(&Conn{c: c, uid: uid})
	return true
}

// AddAddress counts a connection of an address that has shown no identity. When there are most of them, the oldest one
// makes room if it has had time enough to show one; cut is that one. Without such a one it gives false.
func (s *Conns) AddAddress(c net.Conn, addr string, most int, now time.Time) (cut net.Conn, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addrs == nil {
		s.addrs = map[string]*list.List{}
	}
	l := s.addrs[addr]
	if l == nil {
		l = list.New()
		s.addrs[addr] = l
	}
	if most > 0 && l.Len() >= most {
		old := l.Front().Value.(*Conn)
		if now.Sub(old.since) < settle {
			return nil, false
		}
		s.unlist(old)
		cut = old.c
	}
	k := &Conn{c: c, addr: addr, since: now}
	k.place = l.PushBack(k)
	s.addrs[addr] = l // unlist may have taken the empty list away
	s.enter(k)
	return cut, true
}

// enter notes a connection. s.mu is held.
func (s *Conns) enter(k *Conn) {
	if s.conns == nil {
		s.conns = map[net.Conn]*Conn{}
	}
	s.conns[k.c] = k
}

// unlist takes a connection from among the unknown of its address. s.mu is held.
func (s *Conns) unlist(k *Conn) {
	if k.place == nil {
		return
	}
	l := s.addrs[k.addr]
	l.Remove(k.place)
	k.place = nil
	if l.Len() == 0 {
		delete(s.addrs, k.addr)
	}
}

// Remove forgets a connection that was closed or taken over.
func (s *Conns) Remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.conns[c]
	if k == nil {
		return
	}
	delete(s.conns, c)
	if k.addr != "" {
		s.unlist(k)
		return
	}
	if s.uids[k.uid]--; s.uids[k.uid] <= 0 {
		delete(s.uids, k.uid)
	}
}

// Len is how many connections are counted.
func (s *Conns) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}
