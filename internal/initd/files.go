package initd

import (
	"bireme.dev/bireme/internal/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

// unpack lays out the files that came with the job, with its user's rights to where they go.
func (s *server) unpack(r wire.Run, data, env []byte) error {
	if len(data) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.place(r, env)
	if err != nil {
		return err
	}
	return asUser(p.id, func() error { return parcel.Unpack(data, p.dir, valueOf(p.vars, "HOME")) })
}
