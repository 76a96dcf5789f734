package reseal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/fleet"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/vault"
	"bireme.dev/bireme/internal/store"
)

// Config of a Rotator.
type Config struct {
	Store store.Store
	Ring  *seal.Ring
	Epoch func() int64
	// Fleets are those that hold; Put changes one.
	Fleets func() []*core.Fleet
	Put    func(context.Context, *state.ResealFleet) error
	// Credentials are those that hold; PutCredential changes one.
	Credentials   func() []*core.Credential
	PutCredential func(context.Context, *state.ResealCredential) error
	Log           *slog.Logger
	// Settle returns when everything that was sealed with an older key before it was called has been committed, or will
	// never be. Nil: there is nobody else who seals.
	Settle func(context.Context) error
}

// Rotator changes the key that things are sealed with.
type Rotator struct {
	Config
	begin sync.Mutex    // one at a time makes another key the present one
	work  sync.Mutex    // one at a time reseals
	wake  chan struct{} // there is something to do

	mu      sync.Mutex
	err     error // what the last try met
	began   int   // how often another key became the present one
	settled int   // began, when Settle had last returned
}

// New makes a Rotator. Open must come first.
func New(c Config) *Rotator { return &Rotator{Config: c, wake: make(chan struct{}, 1)} }

// Open makes the ring use the store's present key and the store the ring. A store without a note of its present key, of
// before packs were sealed or new, gets the ring's newest, and what lies there unsealed is to be sealed.
func (r *Rotator) Open(ctx context.Context) error {
	s, err := r.Store.Seals(ctx)
	switch {
	case errors.Is(err, store.ErrNotFound):
		ids := r.Ring.IDs()
		s.Key = int64(ids[len(ids)-1])
		if err := r.Store.BeginReseal(ctx, r.Epoch(), s.Key); err != nil {
			return fmt.Errorf("note the present sealing key: %w", err)
		}
	case err != nil:
		return fmt.Errorf("read which sealing key is the present one: %w", err)
	}
	if err := r.Ring.Use(seal.KeyID(s.Key)); err != nil {
		return err
	}
	r.Store.SealWith(r.Ring)
	r.kick()
	return nil
}

func (r *Rotator) kick() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Begin makes a newer key the present one: one that was made ready in the file, or a new one. A rotation that was under
// way continues instead.
func (r *Rotator) Begin(ctx context.Context) error {
	r.begin.Lock()
	defer r.begin.Unlock()
	defer r.kick()
	if err := r.Ring.Reload(); err != nil {
		return err
	}
	s, err := r.Store.Seals(ctx)
	if err != nil {
		return err
	}
	ids := r.Ring.IDs()
	next := ids[len(ids)-1]
	if !s.Done && int64(next) == s.Key && len(ids) > 1 {
		return nil
	}
	if int64(next) <= s.Key {
		if next, err = r.Ring.Add(); err != nil {
			return err
		}
	}
	if err := r.Store.BeginReseal(ctx, r.Epoch(), int64(next)); err != nil {
		return err
	}
	err = r.Ring.Use(next)
	r.mu.Lock()
	r.began++ // what is sealed from here on is under it
	r.mu.Unlock()
	return err
}

// settle waits, once for each present key, until nothing under an older key can be committed any more. It reports
// whether it had to.
func (r *Rotator) settle(ctx context.Context) (waited bool, err error) {
	r.mu.Lock()
	began, settled := r.began, r.settled
	r.mu.Unlock()
	if r.Settle == nil || began == settled {
		return false, nil
	}
	if err := r.Settle(ctx); err != nil {
		return true, err
	}
	r.mu.Lock()
	r.settled = began
	r.mu.Unlock()
	return true, nil
}

// Run reseals whenever there is something to do. A fault is logged and tried again.
func (r *Rotator) Run(ctx context.Context) error {
	const retry = time.Minute
	for {
		wait := time.NewTimer(retry)
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil
		case <-r.wake:
		case <-wait.C:
			if r.Err() == nil {
				continue
			}
		}
		wait.Stop()
		err := r.Finish(ctx)
		if ctx.Err() != nil || errors.Is(err, store.ErrStale) {
			return nil
		}
		if err != nil {
			r.Log.Error("sealing anew stopped; it is tried again", "after", retry, "err", err)
		}
	}
}

// Err is what the last try met.
func (r *Rotator) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Finish reseals until nothing is under another key than the present one, and removes the older keys then.
func (r *Rotator) Finish(ctx context.Context) (err error) {
	r.work.Lock()
	defer r.work.Unlock()
	defer func() {
		r.mu.Lock()
		r.err = err
		r.mu.Unlock()
	}()
	began, worked := time.Now(), false
	for {
		if err := errors.Join(r.fleets(ctx), r.credentials(ctx)); err != nil {
			return err
		}
		start := time.Now()
		s, err := r.Store.Reseal(ctx, r.Epoch())
		if err != nil {
			return err
		}
		pause := time.Since(start) // the writer is everybody's: as long a pause as it was held
		if s.Done && r.stale() == 0 {
			waited, err := r.settle(ctx)
			if err != nil {
				return err
			}
			if !waited {
				return r.drop(s, worked, began)
			}
			pause = 0 // look once more
		}
		worked = true
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

func (r *Rotator) drop(s store.SealState, worked bool, began time.Time) error {
	r.begin.Lock() // the present key stays it meanwhile
	defer r.begin.Unlock()
	if int64(r.Ring.Current()) != s.Key {
		r.kick()
		return nil
	}
	gone, err := r.Ring.Drop()
	if err != nil {
		return err
	}
	if worked || len(gone) > 0 {
		r.Log.Info("everything is sealed with one key", "key", s.Key, "dropped", gone, "took",
			time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// fleets reseals what fleets hold.
func (r *Rotator) fleets(ctx context.Context) error {
	for _, f := range r.Fleets() {
		in, err := fleet.Reseal(r.Ring, f)
		if err != nil {
			return err
		}
		if in == nil {
			continue
		}
		if err := r.Put(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// credentials reseals what projects and users have.
func (r *Rotator) credentials(ctx context.Context) error {
	for _, c := range r.Credentials() {
		in, err := vault.Reseal(r.Ring, c)
		if err == nil && in != nil {
			err = r.PutCredential(ctx, in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stale counts the fleets and credentials that hold something under another key.
func (r *Rotator) stale() (n int) {
	for _, f := range r.Fleets() {
		if in, err := fleet.Reseal(r.Ring, f); err != nil || in != nil {
			n++
		}
	}
	for _, c := range r.Credentials() {
		if in, err := vault.Reseal(r.Ring, c); err != nil || in != nil {
			n++
		}
	}
	return n
}
