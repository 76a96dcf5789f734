package services

import (
	"context"
	"crypto/rand"
	"net"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// maxLines bounds the connections that are waited for.
const maxLines = 16384

// Lines are the connections to replicas that agents were asked for and that have not come yet.
type Lines struct {
	mu      sync.Mutex
	waiting map[string]*line
}

type line struct {
	node core.NodeName
	came chan arrival // capacity 1
}

type arrival struct {
	conn net.Conn
	err  error
}

// NewLines makes an empty set.
func NewLines() *Lines { return &Lines{waiting: map[string]*line{}} }

// Dial asks a node for a connection and waits for it. ask sends the token to the node.
func (l *Lines) Dial(ctx context.Context, node core.NodeName, ask func(token string) error) (net.Conn, error) {
	token := rand.Text()
	w := &line{node: node, came: make(chan arrival, 1)}
	l.mu.Lock()
	if len(l.waiting) >= maxLines {
		l.mu.Unlock()
		return nil, core.Errorf(core.Exhausted, "too many connections to replicas are being made")
	}
	l.waiting[token] = w
	l.mu.Unlock()
	err := ask(token)
	if err == nil {
		select {
		case x := <-w.came:
			return x.conn, x.err
		case <-ctx.Done():
			err = core.Errorf(core.Unavailable, "node %s did not connect in time", node)
		}
	}
	l.mu.Lock()
	delete(l.waiting, token)
	l.mu.Unlock()
	select {
	case x := <-w.came: // it came just now
		if x.conn != nil {
			_ = x.conn.Close()
		}
	default:
	}
	return nil, err
}

// Joined takes a node's connection under its token, or its word that there is none. accept gives the connection.
func (l *Lines) Joined(token string, node core.NodeName, refusal string, accept func() (net.Conn, error)) error {
	l.mu.Lock()
	w := l.waiting[token]
	if w == nil || w.node != node {
		l.mu.Unlock()
		return core.Errorf(core.Gone, "nobody waits for this connection")
	}
	delete(l.waiting, token)
	l.mu.Unlock()
	if refusal != "" {
		if len(refusal) > 300 {
			refusal = refusal[:300]
		}
		w.came <- arrival{err: core.Errorf(core.Unavailable, "%s", refusal)}
		return nil
	}
	conn, err := accept()
	w.came <- arrival{conn, err}
	return err
}
