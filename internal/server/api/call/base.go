package call

import (
	"log/slog"
	"sync/atomic"
	"time"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/disk"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/audit"
	"bireme.dev/bireme/internal/server/limit"
	"bireme.dev/bireme/internal/store"
)

// Base is what the handlers of all subjects share: the state and its history, the settings, the audit log, and what
// callers have of their limits.
type Base struct {
	Config  *config.Config // as at the start; conf has those that hold
	Engine  *engine.Engine
	Store   store.Store
	Audit   *audit.Log // nil: none is kept
	Log     *slog.Logger
	Live    atomic.Pointer[config.Config]
	limits  atomic.Pointer[limits]
	known   limit.Table // by name
	unknown limit.Table // by address
	stored  limit.Budget
	disk    disk.Watch
	Open    streamSet
	signIns audit.SignIns
}

// Settings returns the settings that hold.
func (a *Base) Settings() *config.Config { return a.Live.Load() }

func (a *Base) StoreConfig(c *config.Config) {
	a.Live.Store(c)
	a.limits.Store(limitsOf(c))
}

// Snapshot is the present state, or an error while this server does not lead.
func (a *Base) Snapshot() (*state.Snapshot, error) {
	if s := a.Engine.Snapshot(); s != nil {
		return s, nil
	}
	return nil, core.Errorf(core.Unavailable, "this server does not lead yet; try again")
}

// Now is the time elapsed times are counted to: the engine's own may lie behind when nothing happens.
func (a *Base) Now(snap *state.Snapshot) core.Time { return max(snap.Now(), core.At(time.Now())) }

// Enforced is what of the policy is enforced; the settings have been checked.
func (a *Base) Enforced() config.Enforced {
	e, _ := a.Settings().Accounting.Enforced()
	return e
}
