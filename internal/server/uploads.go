package server

import (
	"context"

	"bireme.dev/bireme/internal/core"
)

// keepUploads removes uploads that are past their time, and those of users who are gone, until ctx ends.
func (s *server) keepUploads(ctx context.Context) error {
	users := func() (names []core.UserName) {
		for _, u := range s.engine.Snapshot().Users() {
			names = append(names, u.Name)
		}
		return names
	}
	return s.uploads.Run(ctx, s.Config.Dstack.UploadKeep.D(), users, func(err error) {
		s.Log.Warn("purge of uploads", "err", err)
	})
}
