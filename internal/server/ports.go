package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

// ports are the listeners of this process. They stay open while it changes from following to leading and back: who
// comes in between waits a moment and is not refused.
type ports struct {
	mu   sync.Mutex
	open map[string]net.Listener
}

// canPause is a listener whose Accept can be ended without closing it.
type canPause interface {
	net.Listener
	SetDeadline(t time.Time) error
}

// lend gives a listener by name, which make opens the first time. Closing it gives it back.
func (p *ports) lend(name string, make func() (net.Listener, error)) (net.Listener, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.open[name]
	if !ok {
		var err error
		if l, err = make(); err != nil {
			return nil, err
		}
		if p.open == nil {
			p.open = map[string]net.Listener{}
		}
		p.open[name] = l
	}
	pausing, ok := l.(canPause)
	if !ok {
		return nil, errors.New("listen " + name + ": this listener cannot change hands")
	}
	if err := pausing.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &lentListener{canPause: pausing}, nil
}

// tcp lends a listener on HOST:PORT.
func (p *ports) tcp(name, addr string) (net.Listener, error) {
	return p.lend(name, func() (net.Listener, error) { return net.Listen("tcp", addr) })
}

// close closes them all.
func (p *ports) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, l := range p.open {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	p.open = nil
	return errors.Join(errs...)
}

// lentListener is a listener that somebody has for a while.
type lentListener struct {
	canPause
	once sync.Once
}

func (l *lentListener) Accept() (net.Conn, error) {
	c, err := l.canPause.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, net.ErrClosed
	}
	return c, err
}

// Close ends Accept; the listener stays open.
func (l *lentListener) Close() error {
	var err error
	l.once.Do(func() { err = l.SetDeadline(time.Unix(1, 0)) })
	return err
}
