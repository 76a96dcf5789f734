package srun

import (
	"context"
	"errors"
	"io"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// goneTrail is how long the last frames of nodes that srun hears directly may take once the server knows the step no
// more.
const goneTrail = 5 * time.Second

// hubPatience is how long nodes wait for srun to open its stream at the server before it hears them without.
const hubPatience = 3 * time.Second

// opening is what comes of opening srun's end of a step's stream at the server.
type opening struct {
	hub *wire.Conn
	err error
}

// openHub opens srun's end at the server. One that takes too long goes on in the background.
func (s *run) openHub(ctx context.Context, key string) (*wire.Conn, <-chan opening, error) {
	first := make(chan opening, 1)
	go func() { // ends with ctx at the latest
		raw, err := s.c.Stream(ctx, key)
		if err != nil {
			first <- opening{err: err}
			return
		}
		first <- opening{hub: wire.NewConn(raw)}
	}()
	select {
	case o := <-first:
		if core.CodeOf(o.err) != core.Gone && !client.Unreachable(o.err) {
			return o.hub, nil, o.err
		}
		return nil, nil, nil // the server is another one since, or away: it is looked for beside the step
	case <-time.After(hubPatience):
		return nil, first, nil
	}
}

// server is the connection to the server; there is another after it was away, and none before it is found.
func (l *link) server() *wire.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hub
}

// tell tells the server of a node. One that is away is told when it is found; a break shows in the reader.
func (l *link) tell(node core.NodeName, state string) {
	if c := l.server(); c != nil {
		_ = c.Send(wire.TypeDirectNews, wire.DirectNews{Node: node, State: state})
	}
}

// fromServer reads what comes by the server, and finds it again when it was away. Nodes that are heard directly go on
// meanwhile; those that are not come again as well, but what was on its way by the server is lost with it.
func (l *link) fromServer() {
	if l.first != nil {
		select {
		case o := <-l.first:
			if o.err == nil {
				l.resumed(o.hub)
			}
		case <-l.quit:
			return
		}
	}
	for {
		err := errNoServer
		if c := l.server(); c != nil {
			var f wire.Frame
			if f, err = c.Next(); err == nil {
				if !l.pass(f, false) {
					return
				}
				continue
			}
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
			case client.Unreachable(rerr) && l.pause(): // a place that is gone is found so at once
			case core.CodeOf(rerr) == core.Conflict && l.pause(): // we are on our way in, as far as it can see
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

var errNoServer = errors.New("the server is away")

// pause waits a moment and reports whether the link is still wanted.
func (l *link) pause() bool {
	select {
	case <-time.After(time.Second):
		return true
	case <-l.quit:
		return false
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

// resumer is how a part of a step finds the server again.
type resumer func() (io.ReadWriteCloser, error)
