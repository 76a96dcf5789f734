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
	p.set(1000)
	stop := make(chan struct{})
	close(stop) // nobody waits here
	began := clock.Now()
	for range 100 {
		p.wait(1000, stop)
	}
	if ahead := p.next - began; ahead < 100*time.Second-paceBurst || ahead > 100*time.Second {
		t.Errorf("100 seconds' worth is handed out until %v", ahead)
	}
}
