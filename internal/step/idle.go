package step

import (
	"errors"
	"time"

	"bireme.dev/bireme/internal/step/clock"
)

// idleAfter is how long the node has no job before what waits for the next one is removed.
const idleAfter = time.Second

// rest removes what waits for the next job, once none has come for a while. The keeper's lock is held.
func (k *Keeper) rest() {
	if len(k.jobs) > 0 {
		return
	}
	k.timers.Cancel(k.idleT)
	k.idleT = k.timers.At(clock.Now()+idleAfter, func() {
		k.mu.Lock()
		busy := len(k.jobs) > 0
		k.mu.Unlock()
		if !busy {
			k.purge()
		}
	})
}

func (k *Keeper) purge() {
	k.volumes.Rest()
	if err := errors.Join(k.scripts.Purge(), k.tmps.Purge()); err != nil {
		k.log.Warn("remove what waits for jobs", "err", err)
	}
}
