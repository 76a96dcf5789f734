package srun

import (
	"errors"
	"io"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// goneTrail is how long the last frames of nodes that srun hears directly may take once the server knows the step no more.
const goneTrail = 5 * time.Second

// server is the connection to the server; there is another after it was away.
func (l *link) server() *wire.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hub
}

// fromServer reads what comes by the server, and finds it again when it was away. Nodes that are heard directly go on
// meanwhile; those that are not come again as well, but what was on its way by the server is lost with it.
func (l *link) fromServer() {
	for {
		f, err := l.server().Next()
		if err == nil {
			if !l.pass(f) {
				return
			}
			continue
		}
		if l.left() == 0 { // the server hangs up on a part that is over; others may run on
			return
		}
		l.mu.Lock()
		l.away = true
		l.mu.Unlock()
		for err != nil && !l.quits() {
			raw, rerr := l.resume()
			switch {
			case rerr == nil:
				l.resumed(wire.NewConn(raw))
				err = nil
			case client.Unreachable(rerr):
				select { // a place that is gone is found so at once
				case <-time.After(time.Second):
				case <-l.quit:
				}
			case core.CodeOf(rerr) == core.NotFound && l.waitNear():
				return
			default:
				l.broken <- errors.Join(err, rerr)
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) quits() bool {
	select {
	case <-l.quit:
		return true
	default:
		return false
	}
}

// left is how many nodes have not said their last.
func (l *link) left() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.nodes)
}

// near is how many nodes are heard directly.
func (l *link) near() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.nodes {
		if c != nil {
			n++
		}
	}
	return n
}

// waitNear waits for the last frames of a step that the server says is over. It is false when some will not come.
func (l *link) waitNear() bool {
	for {
		select {
		case <-l.quit:
			return true
		case <-time.After(goneTrail):
		}
		if left := l.left(); left == 0 || l.near() == 0 {
			return left == 0
		}
	}
}

// resumed goes on with another connection: the server there has forgotten how the nodes' frames go.
func (l *link) resumed(c *wire.Conn) {
	l.mu.Lock()
	l.hub = c
	var news []wire.DirectNews
	for _, n := range l.all {
		if conn, left := l.nodes[n]; !left {
			news = append(news, wire.DirectNews{Node: n, State: "done"})
		} else if conn != nil {
			news = append(news, wire.DirectNews{Node: n, State: "direct"})
		}
	}
	l.mu.Unlock()
	for _, n := range news {
		_ = c.Send(wire.TypeDirectNews, n) // a break shows in the reader
	}
	l.mu.Lock()
	for len(l.held) > 0 && !l.closed {
		f := l.held[0]
		l.mu.Unlock()
		err := c.Send(f.t, f.header, f.payload)
		l.mu.Lock()
		if err != nil { // the reader finds the next
			break
		}
		l.held = l.held[1:]
	}
	l.away = len(l.held) > 0
	l.moved.Broadcast()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		_ = c.Close()
	}
}

// toServer sends a frame to the nodes that are reached by the server, or keeps it while that is away.
func (l *link) toServer(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.away {
		c := l.hub
		l.mu.Unlock()
		err := c.Send(f.t, f.header, f.payload)
		l.mu.Lock()
		if err == nil {
			return
		}
		l.away = l.away || l.hub == c // else there is another already
	}
	l.held = append(l.held, f)
}

// maxHeld is how many frames wait for nodes or the server before whoever reads input is held up.
const maxHeld = 64

// room waits until not too much is waiting, or the link is closed.
func (l *link) room() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.held)+len(l.queue) >= maxHeld && !l.closed {
		l.moved.Wait()
	}
}

// resumer is how a part of a step finds the server again.
type resumer func() (io.ReadWriteCloser, error)
