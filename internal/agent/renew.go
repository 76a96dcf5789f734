package agent

import (
	"context"
	"fmt"
	"os"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// renewal is what was last asked of a keeper.
type renewal struct {
	instance string
	to       os.FileInfo
}

// renewKeeper has a keeper that runs another program than the agent would start take that one, as soon as nothing runs
// on the node: jobs are kept to their end by the program that started them. What is ordered meanwhile is sent again to
// the keeper's new program, as to any that was away for a moment.
func (a *Agent) renewKeeper(ctx context.Context) {
	a.ledger.mu.Lock()
	h := a.ledger.keeper
	a.ledger.mu.Unlock()
	for {
		want, stale := a.opt.Keeper.stale(h.PID)
		if !stale || h.Instance == a.renewed.instance && a.renewed.to != nil && os.SameFile(a.renewed.to, want) {
			return // as it should be, or it was asked to and came back as it was: asking again would not help
		}
		if a.ledger.calm() {
			a.renewed.instance, a.renewed.to = h.Instance, want
			a.log.Info("the keeper gets a new program", "program", a.opt.Keeper.Program)
			f, err := a.ledger.call(ctx.Done(), wire.TypeUpgrade, func(ref uint64) any {
				return wire.Upgrade{Ref: ref, Path: a.opt.Keeper.Program}
			})
			if err != nil {
				return // its connection ended, as it does with the old program
			}
			var r wire.Reply
			if err := f.Decode(&r); err != nil || r.Code != string(core.Conflict) {
				a.log.Warn("the keeper keeps its old program", "code", r.Code, "message", r.Error, "err", err)
				return
			}
			a.renewed.to = nil // not now: something is just ending
		}
		select {
		case <-ctx.Done():
			return
		case <-a.ledger.rest:
		}
	}
}

// stale reports whether a keeper runs another program than the one it would be started from now, and which that is.
func (k KeeperSpec) stale(pid int) (want os.FileInfo, stale bool) {
	want, err := os.Stat(k.Program)
	if err != nil {
		return nil, false
	}
	have, err := os.Stat(fmt.Sprintf("/proc/%d/exe", pid))
	return want, err == nil && !os.SameFile(want, have)
}

// calm reports whether nothing runs.
func (l *ledger) calm() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.running) == 0
}

// rested wakes whoever waits for the end of something.
func (l *ledger) rested() {
	select {
	case l.rest <- struct{}{}:
	default: // it will look anyway
	}
}
