package sqlstore

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed migrations
var migrations embed.FS

type migration struct {
	number int64
	name   string
	text   string
}

// migrationsOf lists an engine's migrations in order; numbers run from 1 without a gap.
func migrationsOf(engine string) ([]migration, error) {
	dir := path.Join("migrations", engine)
	entries, err := fs.ReadDir(migrations, dir)
	if err != nil {
		return nil, fmt.Errorf("store: no migrations for %s: %w", engine, err)
	}
	var all []migration
	for _, e := range entries { // sorted by name
		digits, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n != int64(len(all))+1 {
			return nil, fmt.Errorf("store: migration %s is out of order", e.Name())
		}
		text, err := migrations.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		all = append(all, migration{n, e.Name(), string(text)})
	}
	return all, nil
}

// Migrate brings the database to the newest schema, each migration in a transaction of its own, and refuses one that a
// newer program made.
func Migrate(ctx context.Context, e Engine) error {
	d := e.Dialect()
	all, err := migrationsOf(d.Name)
	if err != nil {
		return err
	}
	for done := false; !done; {
		err := e.Write(ctx, func(tx Tx) error {
			if d.Lock != "" {
				if _, err := tx.Exec(d.Lock); err != nil {
					return err
				}
			}
			at, err := schemaVersion(tx, d)
			if err != nil {
				return err
			}
			if at > int64(len(all)) {
				return fmt.Errorf("store: the database has schema %d, this program knows up to %d: use a newer bireme", at,
					len(all))
			}
			if at == int64(len(all)) {
				done = true
				return nil
			}
			return migrateOne(tx, all[at])
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func schemaVersion(tx Tx, d Dialect) (at int64, err error) {
	var n int64
	if err := queryRow(tx, d.Table, []any{"migrations"}, &n); err != nil {
		return 0, err
	}
	if n == 0 {
		_, err := tx.Exec(`CREATE TABLE migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL)`)
		return 0, err
	}
	err = queryRow(tx, `SELECT COALESCE(MAX(number), 0) FROM migrations`, nil, &at)
	return at, err
}

func migrateOne(tx Tx, m migration) error {
	for _, statement := range statements(m.text) {
		if _, err := tx.Exec(statement); err != nil {
			return fmt.Errorf("store: migration %s: %w", m.name, err)
		}
	}
	_, err := tx.Exec(`INSERT INTO migrations (number, name) VALUES ($1, $2)`, m.number, m.name)
	return err
}

// statements splits a script at the semicolons that end a line, and drops comment lines.
func statements(script string) []string {
	var all []string
	var b strings.Builder
	for line := range strings.Lines(script) {
		if strings.HasPrefix(strings.TrimSpace(line), "--") {
			continue
		}
		b.WriteString(line)
		if strings.HasSuffix(strings.TrimSpace(line), ";") {
			all = append(all, strings.TrimSpace(b.String()))
			b.Reset()
		}
	}
	if rest := strings.TrimSpace(b.String()); rest != "" {
		all = append(all, rest)
	}
	return all
}
