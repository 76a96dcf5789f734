package api

import (
	"log/slog"
	"sync/atomic"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
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
	live    atomic.Pointer[config.Config]
	limits  atomic.Pointer[limits]
	known   limit.Table // by name
	unknown limit.Table // by address
	open    streamSet
	signIns audit.SignIns
}

// conf returns the settings that hold.
func (a *Base) conf() *config.Config { return a.live.Load() }

func (a *Base) setConfig(c *config.Config) {
	a.live.Store(c)
	a.limits.Store(limitsOf(c))
}

// snapshot is the present state, or an error while this server does not lead.
func (a *Base) snapshot() (*state.Snapshot, error) {
	if s := a.Engine.Snapshot(); s != nil {
		return s, nil
	}
	return nil, core.Errorf(core.Unavailable, "this server does not lead yet; try again")
}
