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
	oldest int64 // the oldest schema whose programs may still write after it
	name   string
	text   string
}

// oldestMark begins the first line of a migration that older programs can live with: additions that they do not look
// at. Without it, programs that do not know the migration are kept out.
const oldestMark = "-- oldest: "

// oldestOf is the oldest schema whose programs may write after a migration.
func oldestOf(number int64, text string) (int64, error) {
	first, _, _ := strings.Cut(text, "\n")
	digits, ok := strings.CutPrefix(first, oldestMark)
	if !ok {
		return number, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 1 || n > number {
		return 0, fmt.Errorf("%q: expected %s and a schema up to %d", first, oldestMark, number)
	}
	return n, nil
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
		oldest, err := oldestOf(n, string(text))
		if err != nil {
			return nil, fmt.Errorf("store: migration %s: %w", e.Name(), err)
		}
		all = append(all, migration{n, oldest, e.Name(), string(text)})
	}
	return all, nil
}

// Migrate brings the database to the newest schema, each migration in a transaction of its own. One that a newer
// program made is taken as it is where that program said that this one may write to it, and refused otherwise.
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
				oldest, err := oldestWriter(tx, int64(len(all)))
				if err != nil {
					return err
				}
				if oldest > int64(len(all)) {
					return fmt.Errorf("store: the database has schema %d, which programs of schema %d and later may write; "+
						"this one knows up to %d: use a newer bireme", at, oldest, len(all))
				}
			}
			if at >= int64(len(all)) {
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

// columnSince is the schema from which on each migration says its oldest writer.
const columnSince = 12

// oldestWriter is the oldest schema whose programs may write, of a database with migrations after known.
func oldestWriter(tx Tx, known int64) (oldest int64, err error) {
	err = queryRow(tx, `SELECT COALESCE(MAX(CASE WHEN oldest = 0 THEN number ELSE oldest END), 0) FROM migrations
		WHERE number > $1`, []any{known}, &oldest)
	return oldest, err
}

func migrateOne(tx Tx, m migration) error {
	for _, statement := range statements(m.text) {
		if _, err := tx.Exec(statement); err != nil {
			return fmt.Errorf("store: migration %s: %w", m.name, err)
		}
	}
	if m.number < columnSince {
		_, err := tx.Exec(`INSERT INTO migrations (number, name) VALUES ($1, $2)`, m.number, m.name)
		return err
	}
	_, err := tx.Exec(`INSERT INTO migrations (number, name, oldest) VALUES ($1, $2, $3)`, m.number, m.name, m.oldest)
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
