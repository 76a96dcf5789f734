// Package open chooses the store's engine by its URL, so that database drivers are linked by those who need one only.
package open

import (
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/postgres"
	"bireme.dev/bireme/internal/store/sqlite"
)

// Store opens the store that url names, and brings its schema up to date:
//
//	sqlite:PATH               a file, made when it is not there
//	postgres://user@host/db   a PostgreSQL database; postgresql:// is the same
func Store(ctx context.Context, url string) (store.Store, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case ok && scheme == "sqlite" && rest != "":
		return sqlite.Open(ctx, strings.TrimPrefix(rest, "//"))
	case scheme == "postgres" || scheme == "postgresql":
		return postgres.Open(ctx, url)
	default:
		return nil, fmt.Errorf("store: %q names no store: want sqlite:PATH or postgres://…", scheme)
	}
}
