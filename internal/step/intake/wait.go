package intake

import (
	"time"

	"bireme.dev/bireme/internal/step/clock"
)

// While somebody waits for more of a log it is looked at every logPoll; one of which the keeper knows when there is
// more, every logIdle. logGather is the least time between two pieces of a log that are not full.
const (
	logPoll   = 50 * time.Millisecond
	logIdle   = time.Second
	logGather = 25 * time.Millisecond
)

// Gather is how long a piece of output that is not full waits for more: a job that writes a line at a time would
// otherwise cost a message a line. The first line after a silence does not wait. 0: it goes now.
func (in *Intake) Gather() time.Duration {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := clock.Now()
	if wait := in.partial + logGather - now; in.partial != 0 && wait > 0 {
		return wait
	}
	in.partial = now
	return 0
}

// Await returns when there may be more of a log: when more is closed, the step is over, or a time has passed; 0: the
// usual one. Without more the log is looked at often.
func Await(more, over <-chan struct{}, wait time.Duration) {
	switch {
	case wait > 0:
	case more != nil:
		wait = logIdle
	default:
		wait = logPoll
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
	case <-more:
	}
}
