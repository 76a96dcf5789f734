package dstackdb

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	_ "modernc.org/sqlite"             // the driver sqlite

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/secretarg"
)

// source is an open database within one transaction that only reads.
type source struct {
	db *sql.DB
	tx *sql.Tx
	// of SQLite: what lists the columns of a table
	columns string
	name    string // for messages: no password
}

// open opens the database: the file of SQLite, or a URL of PostgreSQL as DSTACK_DATABASE_URL has it.
func open(ctx context.Context, database string) (*source, error) {
	scheme, rest, isURL := strings.Cut(database, "://")
	s := &source{name: "the database"}
	if !isURL {
		s.name = database
	}
	var err error
	switch base, _, _ := strings.Cut(scheme, "+"); {
	case !isURL || base == "sqlite":
		file := database
		if isURL {
			file = strings.TrimPrefix(rest, "/") // sqlite+aiosqlite:///FILE, with four slashes for a path from the root
		}
		if _, err := os.Stat(file); err != nil {
			return nil, core.Errorf(core.NotFound, "%s: %v", file, errors.Unwrap(err))
		}
		s.columns = "SELECT name FROM pragma_table_info('%s')"
		s.db, err = sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro&_pragma=busy_timeout(5000)")
	case base == "postgresql" || base == "postgres":
		s.columns = "SELECT column_name FROM information_schema.columns WHERE table_name = '%s' " +
			"AND table_schema = ANY (current_schemas(false))"
		s.db, err = sql.Open("pgx", "postgres://"+rest)
	default:
		return nil, core.Errorf(core.Invalid, "a database is a file of SQLite or postgresql://…, not %s://…", scheme)
	}
	if err != nil {
		return nil, core.Errorf(core.Invalid, "%s", masked(err))
	}
	if s.tx, err = s.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.isolation()}); err != nil {
		s.db.Close()
		return nil, core.Errorf(core.Unavailable, "the database cannot be opened: %s", masked(err))
	}
	return s, nil
}

// masked is an error without the password of a URL in it.
func masked(err error) string { return secretarg.Mask([]string{err.Error()})[0] }

// isolation has every statement see the same moment; SQLite does so anyway.
func (s *source) isolation() sql.IsolationLevel {
	if strings.Contains(s.columns, "pragma") {
		return sql.LevelDefault
	}
	return sql.LevelRepeatableRead
}

func (s *source) close() error { return errors.Join(s.tx.Rollback(), s.db.Close()) }

// row is the columns of a row as texts; null is "".
type row map[string]string

// yes reads a truth of either database.
func (r row) yes(column string) bool {
	switch strings.ToLower(r[column]) {
	case "1", "t", "true":
		return true
	}
	return false
}

// id reads an identifier: 32 digits in SQLite, with dashes in PostgreSQL.
func (r row) id(column string) string { return strings.ReplaceAll(strings.ToLower(r[column]), "-", "") }

// maxRows bounds a table.
const maxRows = 1_000_000

// read reads the columns of a table that are there. A table that is not there has no rows.
func (s *source) read(ctx context.Context, table string, columns ...string) ([]row, error) {
	has, err := s.texts(ctx, fmt.Sprintf(s.columns, table))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range columns {
		for _, h := range has {
			if h["0"] == c {
				names = append(names, c)
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = `CAST("` + n + `" AS TEXT)`
	}
	rows, err := s.texts(ctx, "SELECT "+strings.Join(quoted, ", ")+" FROM "+table)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", table, err)
	}
	for _, r := range rows {
		for i, n := range names {
			r[n] = r[fmt.Sprint(i)]
			delete(r, fmt.Sprint(i))
		}
	}
	return rows, nil
}

// texts runs a query; columns are named by their place.
func (s *source) texts(ctx context.Context, query string) (out []row, err error) {
	rows, err := s.tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values := make([]sql.NullString, len(names))
	at := make([]any, len(names))
	for i := range values {
		at[i] = &values[i]
	}
	for rows.Next() {
		if len(out) >= maxRows {
			return nil, core.Errorf(core.TooLarge, "the database has more than %d rows in one table", maxRows)
		}
		if err := rows.Scan(at...); err != nil {
			return nil, err
		}
		r := row{}
		for i, v := range values {
			r[fmt.Sprint(i)] = v.String
		}
		out = append(out, r)
	}
	return out, rows.Err()
}

// isID reports whether a text is an identifier as databases have it.
func isID(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 16
}
