package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"

	"bireme.dev/bireme/internal/store/sqlstore"
)

// Copy writes a copy of the database in the file from, as of one moment, into the new file to. A server may be at
// work on it meanwhile; it is not held up.
func Copy(from, to string) (err error) {
	if _, err := os.Stat(from); err != nil { // opening would make one
		return err
	}
	f, err := os.OpenFile(
		to,
		os.O_CREATE|os.O_EXCL|os.O_WRONLY,
		0o600,
	) // SQLite takes an empty file, and leaves its mode
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	c, err := openWith(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if _, err := c.run("VACUUM INTO $1", to); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return syncFile(to)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Inspect returns what the database in a file says of itself, and what is wrong with the file; a thorough look reads
// all of it.
func Inspect(ctx context.Context, path string, thorough bool) (f sqlstore.Facts, faults []string, err error) {
	if _, err := os.Stat(path); err != nil {
		return f, nil, err
	}
	c, err := openWith(path)
	if err != nil {
		return f, nil, err
	}
	e := &engine{path: path, idle: make(chan *conn, 1), closed: make(chan struct{})}
	e.idle <- c
	defer func() { err = errors.Join(err, (<-e.idle).close()) }()
	check := "PRAGMA quick_check(20)"
	if thorough {
		check = "PRAGMA integrity_check(20)"
	}
	var line string
	err = e.Read(ctx, func(tx sqlstore.Tx) error {
		return tx.Query(check, nil, []any{&line}, func() error {
			if line != "ok" {
				faults = append(faults, line)
			}
			return nil
		})
	})
	if err != nil {
		return f, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(faults) > 0 {
		return f, faults, nil
	}
	f, err = sqlstore.Inspect(ctx, e)
	return f, nil, err
}
