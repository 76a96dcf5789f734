// Package open chooses the store's engine by its URL, so that database drivers are linked by those who need one only.
package open

import (
	"context"
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/postgres"
	"bireme.dev/bireme/internal/store/sqlite"
	"bireme.dev/bireme/internal/store/sqlstore"
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

// File is the SQLite file that url names, if it names one.
func File(url string) (string, bool) {
	rest, ok := strings.CutPrefix(url, "sqlite:")
	return strings.TrimPrefix(rest, "//"), ok && rest != ""
}

// Inspect returns what the database that url names says of itself, without migrating it, and what is wrong with it.
// A thorough look reads every page of a file.
func Inspect(ctx context.Context, url string, thorough bool) (f sqlstore.Facts, faults []string, err error) {
	if file, ok := File(url); ok {
		return sqlite.Inspect(ctx, file, thorough)
	}
	f, err = postgres.Inspect(ctx, url)
	return f, nil, err
}
