package reseal

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/engine/state"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/server/vault"
	"bireme.dev/bireme/internal/store"
)

// noPacks is a store with nothing sealed in it but the note of the present key.
type noPacks struct {
	store.Store
	mu  sync.Mutex
	key int64
}

func (s *noPacks) Seals(context.Context) (store.SealState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key == 0 {
		return store.SealState{}, store.ErrNotFound
	}
	return store.SealState{Key: s.key, Done: true}, nil
}

func (s *noPacks) BeginReseal(_ context.Context, _, key int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
	return nil
}

func (s *noPacks) Reseal(ctx context.Context, _ int64) (store.SealState, error) { return s.Seals(ctx) }
func (s *noPacks) SealWith(store.Sealer)                                        {}

// A secret that was sealed before a rotation and committed after everything else was resealed can still be opened.
func TestRotationWaitsForLateCommits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ring, err := seal.Open(filepath.Join(t.TempDir(), "key"), true)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var held []*core.Credential
		late := &core.Credential{Kind: core.SecretCredential, Owner: "p", Name: "token"}
		r := New(Config{
			Store: &noPacks{}, Ring: ring, Epoch: func() int64 { return 1 }, Log: slog.New(slog.DiscardHandler),
			Settle: func(context.Context) error { // what was sealed before is committed by then
				mu.Lock()
				defer mu.Unlock()
				held = append(held, late)
				return nil
			}, Fleets: func() []*core.Fleet { return nil },
			Credentials: func() []*core.Credential {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(held)
			},
			PutCredential: func(_ context.Context, in *state.ResealCredential) error {
				mu.Lock()
				defer mu.Unlock()
				for i, c := range held {
					if c.Sealed == in.Old {
						next := *c
						next.Sealed = in.New
						held[i] = &next
					}
				}
				return nil
			},
		})
		if err := r.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := vault.New(ring)
		if err := v.Seal(late, []byte("hunter2")); err != nil {
			t.Fatal(err)
		}
		if err := r.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.Finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ids := ring.IDs(); len(ids) != 1 {
			t.Errorf("keys %v are left", ids)
		}
		if got, err := v.Open(held[0]); err != nil || string(got) != "hunter2" {
			t.Errorf("the secret is %q: %v", got, err)
		}
	})
}
