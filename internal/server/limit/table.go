package limit

import (
	"net/netip"
	"sync"
	"time"
)

// Table holds the callers that have something under way. The zero Table is empty and ready.
type Table struct {
	mu      sync.Mutex
	callers map[string]*Caller
	sweep   int // size at which those that are idle are looked for
	rest    Caller
}

// Bounds of a table: beyond maxCallers all new ones share one caller, as an attacker with many addresses would like to
// be many.
const (
	firstSweep = 1024
	maxCallers = 1 << 17
)

// Caller returns the caller of a name, which no other caller shares while it has anything under way. hold is called on
// it before somebody else could find it idle.
func (t *Table) Caller(name string, r *Rules, now time.Time, hold func(*Caller) *Excess) (*Caller, *Excess) {
	for {
		c := t.find(name, r, now)
		if x := hold(c); x != nil {
			return c, x
		}
		c.mu.Lock()
		gone := c.idle
		c.mu.Unlock()
		if !gone {
			return c, nil
		}
		// It was dropped between the two: what it holds would not be seen by those who come next. This is rare, and the
		// call it counted ends with it.
	}
}

func (t *Table) find(name string, r *Rules, now time.Time) *Caller {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.callers[name]
	if c != nil {
		return c
	}
	if t.callers == nil {
		t.callers, t.sweep = map[string]*Caller{}, firstSweep
	}
	if len(t.callers) >= t.sweep {
		t.drop(r, now)
	}
	if len(t.callers) >= maxCallers {
		return &t.rest
	}
	c = &Caller{at: now}
	t.callers[name] = c
	return c
}

// drop forgets callers that have nothing under way and a full bucket. t.mu is held.
func (t *Table) drop(r *Rules, now time.Time) {
	for name, c := range t.callers {
		c.mu.Lock()
		if !c.busy(r, now) {
			c.idle = true
			delete(t.callers, name)
		}
		c.mu.Unlock()
	}
	t.sweep = max(firstSweep, 2*len(t.callers))
}

// Len is how many callers are known.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.callers)
}

// Address is the caller's name of a network address: the address itself, or the network of 64 bits that one host of
// IPv6 commonly has.
func Address(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return addr
	}
	ip := ap.Addr().Unmap()
	if ip.Is4() {
		return ip.String()
	}
	p, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip.String()
	}
	return p.String()
}
