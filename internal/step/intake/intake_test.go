package intake

import (
	"testing"
	"time"

	"bireme.dev/bireme/internal/step/clock"
)

// TestPace: what is handed out is within the rate, a burst ahead at most.
func TestPace(t *testing.T) {
	t.Parallel()
	var p Pace
	p.set(1000, 0)
	stop := make(chan struct{})
	close(stop) // nobody waits here
	began := clock.Now()
	for range 100 {
		p.wait(new(load), 1000, stop)
	}
	if ahead := p.next - began; ahead < 100*time.Second-paceBurst || ahead > 100*time.Second {
		t.Errorf("100 seconds' worth is handed out until %v", ahead)
	}
}

// TestPaceAlone: who prints much has a rate of its own until a second one does; small talk of others changes nothing.
func TestPaceAlone(t *testing.T) {
	t.Parallel()
	const rate, alone = 1 << 20, 16 << 20
	var p Pace
	p.set(rate, alone)
	stop := make(chan struct{})
	close(stop)
	var much, little, other load
	began := clock.Now()
	for range 256 { // one second's worth of it alone
		p.wait(&much, 64<<10, stop)
		p.wait(&little, 10, stop)
	}
	if ahead := p.next - began; ahead < time.Second/2 || ahead > 3*time.Second/2 {
		t.Errorf("alone: 16 MB are handed out until %v", ahead)
	}
	p.wait(&other, 2*muchPrinted, stop)
	at := p.next
	for range 16 {
		p.wait(&much, 64<<10, stop)
	}
	if more := p.next - at; more != time.Second {
		t.Errorf("two: another MB takes %v", more)
	}
	p.set(rate, 0)
	at = p.next
	delete(p.busy, &other)
	p.wait(&much, rate, stop)
	if more := p.next - at; more != time.Second {
		t.Errorf("without a rate of its own a MB takes %v", more)
	}
}
