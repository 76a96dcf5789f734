package server

import (
	"context"
	"errors"

	"bireme.dev/bireme/internal/server/ca"
	"bireme.dev/bireme/internal/server/seal"
	"bireme.dev/bireme/internal/store"
)

// openAuthority reads the ring of keys and the certificate authority that is sealed with it. A ring is made only where
// nothing is sealed yet: beside an older store a new one would open nothing.
func (s *server) openAuthority(ctx context.Context) error {
	missing := func(err error) bool { return errors.Is(err, store.ErrNotFound) }
	_, err := s.store.Sealed(ctx, ca.SealedName)
	if err != nil && !missing(err) {
		return err
	}
	if s.seals, err = seal.Open(s.Config.SealKey(), err != nil); err != nil {
		return err
	}
	s.authority, err = ca.Open(ctx, s.store, missing, s.seals, s.Config.Cluster, ca.Lives{
		Node: s.Config.Certificates.Node.D(), Server: s.Config.Certificates.Server.D(),
	})
	return err
}
