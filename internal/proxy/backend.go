package proxy

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// backend is the connections to one replica.
type backend struct {
	id        string
	transport *http.Transport
	inFlight  atomic.Int64
	// failed is until when it is only taken where there is no other: a connection to it has just failed. Unix nanoseconds.
	failed atomic.Int64
	left   atomic.Bool
}

// Bounds of what a replica may do.
const (
	maxIdleConns     = 256
	maxReplicaHeader = 256 << 10
	dialTime         = 10 * time.Second
	avoidFor         = time.Second
)

func newBackend(r Replica) *backend {
	dial := r.Dial
	return &backend{id: r.ID, transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			c, err := dial(ctx)
			if err != nil {
				return nil, &dialError{err}
			}
			return c, nil
		},
		// What a client wants compressed is its own affair.
		DisableCompression: true, MaxIdleConnsPerHost: maxIdleConns, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: maxReplicaHeader, ReadBufferSize: 32 << 10, WriteBufferSize: 32 << 10,
	}}
}

func (b *backend) busy() bool { return b.inFlight.Load() > 0 }

// leave says that no more requests come.
func (b *backend) leave() {
	b.left.Store(true)
	b.transport.CloseIdleConnections()
}

// done ends a request.
func (b *backend) done() {
	if b.inFlight.Add(-1) == 0 && b.left.Load() {
		b.transport.CloseIdleConnections()
	}
}

// pick takes the replica with the fewest requests, of several the one after that which was taken last. Those in tried
// are passed over. Its done must be called. nil: there is none.
func (p *Proxy) pick(r *route, tried []*backend) *backend {
	n := len(r.pool)
	if n == 0 {
		return nil
	}
	start := int(atomic.AddUint32(&r.state.next, 1)) % n
	now := time.Now().UnixNano()
	var best *backend
	least := int64(0)
search:
	for i := range n {
		b := r.pool[(start+i)%n]
		for _, t := range tried {
			if t == b {
				continue search
			}
		}
		load := b.inFlight.Load()
		if b.failed.Load() > now {
			load += 1 << 40
		}
		if best == nil || load < least {
			best, least = b, load
		}
	}
	if best != nil {
		best.inFlight.Add(1)
	}
	return best
}
