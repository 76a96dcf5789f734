package intake

import (
	"sync"
	"time"

	"bireme.dev/bireme/internal/step/clock"
)

// Pace shares a rate among all who write. It hands out moments in the order they are asked for.
type Pace struct {
	mu    sync.Mutex
	rate  int64                   // bytes a second of all together; 0: no limit
	alone int64                   // of one while nobody else prints much; not above rate: it has that
	next  time.Duration           // boottime at which all that was handed out is used up
	busy  map[*load]time.Duration // who prints much, and when that was last seen
}

// load is how much one prints.
type load struct {
	second time.Duration // boottime at which the present count began
	bytes  int64
}

const (
	// paceBurst is how much of the shared rate may come at once after a rest.
	paceBurst = 4 * time.Second
	// muchPrinted is what counts as much, in a second.
	muchPrinted = 256 << 10
	// busyFor is how long who printed much counts.
	busyFor = 2 * time.Second
)

func (p *Pace) set(rate, alone int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate, p.alone = rate, alone
}

// wait returns when n more bytes are within the rate, or at the end of all.
func (p *Pace) wait(l *load, n int64, stop <-chan struct{}) {
	p.mu.Lock()
	now := clock.Now()
	if p.rate <= 0 {
		p.mu.Unlock()
		return
	}
	rate, burst := p.rate, paceBurst
	if p.note(l, n, now); len(p.busy) < 2 && p.alone > rate {
		burst = time.Duration(float64(burst) * float64(rate) / float64(p.alone)) // as many bytes
		rate = p.alone
	}
	p.next = max(p.next, now-burst) + time.Duration(float64(n)/float64(rate)*float64(time.Second))
	late := p.next - now
	p.mu.Unlock()
	if late <= 0 {
		return
	}
	t := time.NewTimer(late)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	}
}

// note counts what one prints, and forgets those who print much no more. The lock is held.
func (p *Pace) note(l *load, n int64, now time.Duration) {
	if now-l.second > time.Second {
		l.second, l.bytes = now, 0
	}
	if l.bytes += n; l.bytes < muchPrinted {
		return
	}
	if p.busy == nil {
		p.busy = map[*load]time.Duration{}
	}
	p.busy[l] = now
	for o, at := range p.busy {
		if now-at > busyFor {
			delete(p.busy, o)
		}
	}
}
