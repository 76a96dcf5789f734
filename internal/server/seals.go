package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/reseal"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/store"
)

func missing(err error) bool { return errors.Is(err, store.ErrNotFound) }

// openRing reads the ring of keys. One is made only where nothing is sealed yet: beside an older store it would open
// nothing.
func openRing(ctx context.Context, st store.Store, cfg *config.Config) (*seal.Ring, error) {
	_, err := st.Sealed(ctx, ca.SealedName)
	if err != nil && !missing(err) {
		return nil, err
	}
	return seal.Open(cfg.SealKey(), err != nil)
}

// checkSeals finds out whether this server could read what the store holds, before it leads: one that cannot is found
// when it is started, and not when it is needed.
func checkSeals(ctx context.Context, st store.Store, cfg *config.Config) error {
	if _, err := st.Sealed(ctx, ca.SealedName); err != nil {
		return nil //nolint:nilerr // nothing is sealed yet, or the store is away: a server waits for it
	}
	if _, err := seal.Open(cfg.SealKey(), false); err != nil {
		return fmt.Errorf("server.seal_key: %w; servers of one store have one key", err)
	}
	return nil
}

// sealCheck refuses what was sealed with a key that is not the present one any more. The engine asks when it is an
// input's turn: nothing under an older key is applied once another is the present one.
type sealCheck struct {
	ring atomic.Pointer[seal.Ring] // nil: the engine runs before it is there
}

func (c *sealCheck) check(in state.Input) error {
	switch in := in.(type) {
	case *state.PutCredential:
		return c.checkText(in.Credential.Sealed)
	case *state.PutFleet:
		if in.Dry {
			return nil
		}
		if err := c.checkText(in.Fleet.Env.Sealed); err != nil {
			return err
		}
		for i := range in.Fleet.Keys {
			if err := c.checkText(in.Fleet.Keys[i].Sealed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *sealCheck) checkText(text string) error {
	ring := c.ring.Load()
	if text == "" || ring == nil {
		return nil
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return core.Errorf(core.Invalid, "what should be sealed is not: %v", err)
	}
	if !ring.Fresh(sealed) {
		return core.Errorf(core.Unavailable, "the sealing key was changed meanwhile; try again")
	}
	return nil
}

// openSeals reads the ring of keys, has the store seal with it, and reads the certificate authority.
func (s *server) openSeals(ctx context.Context) (err error) {
	if s.seals, err = openRing(ctx, s.store, s.Config); err != nil {
		return err
	}
	s.sealed.ring.Store(s.seals)
	s.rotator = reseal.New(reseal.Config{
		Store: s.store, Ring: s.seals, Epoch: s.engine.Epoch, Log: s.Log,
		Settle: func(ctx context.Context) error {
			// Inputs are applied in order, and sealCheck lets nothing under an older key follow this one, which changes
			// nothing.
			_, err := engine.Do(ctx, s.engine, &state.NumberPolicy{})
			return err
		},
		Fleets: func() []*core.Fleet {
			if snap := s.engine.Snapshot(); snap != nil {
				return snap.Fleets()
			}
			return nil
		},
		Put: func(ctx context.Context, in *state.ResealFleet) error {
			_, err := engine.Do(ctx, s.engine, in)
			return err
		},
		Credentials: func() []*core.Credential {
			if snap := s.engine.Snapshot(); snap != nil {
				return snap.Credentials()
			}
			return nil
		},
		PutCredential: func(ctx context.Context, in *state.ResealCredential) error {
			_, err := engine.Do(ctx, s.engine, in)
			return err
		},
	})
	if err := s.rotator.Open(ctx); err != nil {
		return err
	}
	s.authority, err = ca.Open(ctx, s.store, missing, s.seals, s.Config.Cluster, ca.Lives{
		Node: s.Config.Certificates.Node.D(), Server: s.Config.Certificates.Server.D(),
	})
	return err
}

// rotateSeals begins a rotation of the sealing key, or tells how far one is.
func (s *server) rotateSeals(ctx context.Context, by core.Identity, begin bool) (*client.Seals, error) {
	if !by.Admin {
		return nil, core.Errorf(core.Denied, "only an administrator sees and rotates the sealing key").Because(
			"access_denied")
	}
	if begin {
		if err := s.rotator.Begin(ctx); err != nil {
			return nil, err
		}
	}
	st, err := s.store.Seals(ctx)
	if err != nil {
		return nil, err
	}
	out := &client.Seals{File: s.seals.Path(), Key: st.Key, Done: st.Done}
	for _, id := range s.seals.IDs() {
		out.Keys = append(out.Keys, int64(id))
		out.Done = out.Done && int64(id) >= st.Key // the older ones leave last
	}
	if err := s.rotator.Err(); err != nil {
		out.Error = err.Error()
	}
	if st.Last > 0 && st.After > 0 {
		out.Percent = int(100 * (float64(st.After) / float64(st.Last)))
	}
	return out, nil
}

// caChanged writes the authorities for clients of this host and has nodes ask for those they should trust.
func (s *server) caChanged() error {
	if err := writeFile(s.Config.CAFile(), s.authority.PEM()); err != nil {
		return err
	}
	s.hub.Tell()
	return nil
}

// RotateSeals rotates the sealing key of a store that no server leads.
func RotateSeals(ctx context.Context, cfg *config.Config, log *slog.Logger) (file string, err error) {
	st, err := openStore(ctx, cfg.Store())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if _, err := st.Sealed(ctx, ca.SealedName); missing(err) {
		return "", core.Errorf(core.NotFound, "the store has nothing sealed yet: a server makes the first key when it starts")
	}
	ring, err := openRing(ctx, st, cfg)
	if err != nil {
		return "", err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return ring.Path(), reseal.Offline(ctx, st, ring, host+":seal rotate", log)
}
