package socket

import (
	"encoding/json"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire/local"
)

// Bounds of the connections to one node's socket.
const (
	maxTotal   = 8192
	keptFiles  = 256 // descriptors that the agent needs for itself
	smallShare = 16  // the last eighth of the connections is for users with fewer than this
)

// conns counts open connections by uid until they are closed, streams that took theirs over included. Root is not
// counted: it needs no socket to stop the agent.
type conns struct {
	perUser atomic.Int64 // of the settings; 0: no limit

	mu    sync.Mutex
	most  int // of all users together
	total int
	uids  map[uint32]int
}

// init sets the total by the number of files the process may open: a call takes two, one to the caller, one to the
// server.
func (s *conns) init() {
	s.most, s.uids = maxTotal, map[uint32]int{}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil && files.Cur < 2*maxTotal+keptFiles {
		s.most = max(8, (int(files.Cur)-keptFiles)/2)
	}
}

// add counts a connection of uid, or returns why there may be no more.
func (s *conns) add(uid uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	have, limit, where := s.uids[uid], s.most/4, "a quarter of those the node's agent takes, by the files it may open"
	if n := int(s.perUser.Load()); n > 0 && n < limit {
		limit, where = n, "limits.connections in the server's settings"
	}
	switch {
	case have >= limit:
		return fmt.Errorf("uid %d has %d connections to this node's socket open, the limit (%s)", uid, have, where)
	case s.total >= s.most, s.total >= s.most-s.most/8 && have >= smallShare:
		return fmt.Errorf("this node's socket has %d connections open; its limit of %d is given by the files the "+
			"agent may open", s.total, s.most)
	}
	s.uids[uid]++
	s.total++
	return nil
}

func (s *conns) remove(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	if s.uids[uid]--; s.uids[uid] <= 0 {
		delete(s.uids, uid)
	}
}

// listener counts what it accepts and refuses what is over a limit.
type listener struct {
	net.Listener
	conns *conns
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, err := local.Peer(c)
		if err != nil {
			return &conn{Conn: c}, nil //nolint:nilerr // its calls are refused
		}
		if peer.Uid == 0 {
			return &conn{Conn: c, peer: peer}, nil
		}
		if err := l.conns.add(peer.Uid); err != nil {
			refuseConn(c, err)
			continue
		}
		return &conn{Conn: c, peer: peer, counted: l.conns}, nil
	}
}

// refuseConn reports why the connection ends. The answer fits into the socket's buffer, so nobody waits for the caller.
func refuseConn(c net.Conn, why error) {
	body, err := json.Marshal(errorBody{core.Errorf(core.Exhausted, "%v", why).Because("limit_connections")})
	if err == nil {
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"+
			"Content-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	}
	_ = c.Close() // the answer was best effort
}

// conn is a connection with its caller.
type conn struct {
	net.Conn
	peer    *unix.Ucred
	counted *conns // nil: it is not counted
	once    sync.Once
}

// Close also gives its place to another connection.
func (c *conn) Close() error {
	if c.counted != nil {
		c.once.Do(func() { c.counted.remove(c.peer.Uid) })
	}
	return c.Conn.Close()
}

// CloseWrite ends the direction to the caller; streams that took the connection over use it.
func (c *conn) CloseWrite() error { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }
