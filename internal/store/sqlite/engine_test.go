package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/sqlstore"
)

// raw opens an engine, with a store over it.
func raw(t *testing.T) (*engine, store.Store) {
	t.Helper()
	return limited(t, usualLimits)
}

func limited(t *testing.T, lim limits) (*engine, store.Store) {
	t.Helper()
	e, err := openEngine(filepath.Join(t.TempDir(), "bireme.db"), lim)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	db, err := sqlstore.Open(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return e, db
}

// schema lists all definitions of a database, without regard to white space.
func schema(t *testing.T, c *conn) map[string]string {
	t.Helper()
	var name, text string
	all := map[string]string{}
	err := c.query(t.Context(), `SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL`, nil, []any{&name, &text},
		func() error {
			all[name] = strings.Join(strings.Fields(text), " ")
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSchema(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	want, err := open(filepath.Join(t.TempDir(), "want.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer want.close()
	for statement := range strings.SplitSeq(string(script), ";\n") {
		var lines []string
		for line := range strings.Lines(statement) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if statement = strings.TrimSpace(strings.Join(lines, "")); statement == "" {
			continue
		}
		if _, err := want.run(statement); err != nil {
			t.Fatal(err)
		}
	}
	e, _ := raw(t)
	if d := cmp.Diff(schema(t, e.writer), schema(t, want)); d != "" {
		t.Errorf("migrated (-) schema.sql (+):\n%s", d)
	}
}

func TestNewerSchema(t *testing.T) {
	t.Parallel()
	e, _ := raw(t)
	facts, err := sqlstore.Inspect(t.Context(), e)
	if err != nil || facts.Oldest != facts.Schema || facts.Schema != facts.Known {
		t.Fatalf("facts of a new database: %+v, %v", facts, err)
	}
	known := facts.Known
	add := func(number, oldest int64) {
		t.Helper()
		if _, err := e.writer.run(`INSERT INTO migrations VALUES ($1, 'from the future', $2)`, number, oldest); err != nil {
			t.Fatal(err)
		}
	}
	add(known+1, known) // it only added something
	if err := sqlstore.Migrate(t.Context(), e); err != nil {
		t.Errorf("a database that the program may write: %v", err)
	}
	if facts, err := sqlstore.Inspect(t.Context(), e); err != nil || facts.Oldest != known || facts.Schema != known+1 {
		t.Errorf("facts of a database that the program may write: %+v, %v", facts, err)
	}
	add(known+2, known+2)
	add(known+3, known) // does not help: the one before excludes us
	if err := sqlstore.Migrate(t.Context(), e); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("got %v, want a hint to use a newer program", err)
	}
	if facts, err := sqlstore.Inspect(t.Context(), e); err != nil || facts.Oldest != known+2 {
		t.Errorf("facts of a database that the program may not write: %+v, %v", facts, err)
	}
}

func TestPrivate(t *testing.T) {
	t.Parallel()
	e, s := raw(t)
	if _, err := s.Lead(t.Context(), "a", time.Minute, 0, 1); err != nil {
		t.Fatal(err)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		st, err := os.Stat(e.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(st.Name()), st.Mode().Perm())
		}
	}
}

func TestPragmas(t *testing.T) {
	t.Parallel()
	e, _ := raw(t)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1",
		"busy_timeout": "5000", "page_size": "4096",
	} {
		var got string
		if err := e.writer.query(t.Context(), "PRAGMA "+pragma, nil, []any{&got}, func() error { return nil }); err != nil ||
			got != want {
			t.Errorf("%s is %s, %v; want %s", pragma, got, err, want)
		}
	}
}

// TestFull: a full disk is told from other errors, harms nothing, and Probe tells when it is over.
func TestFull(t *testing.T) {
	t.Parallel()
	e, s := raw(t)
	epoch, err := s.Lead(t.Context(), "a", time.Minute, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	pages := func(limit int64) {
		if _, err := e.writer.run("PRAGMA max_page_count = " + strconv.FormatInt(limit, 10)); err != nil {
			t.Fatal(err)
		}
	}
	var schema int64
	err = e.writer.query(t.Context(), "PRAGMA page_count", nil, []any{&schema}, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	pages(schema + 25) // room for one change
	change := func(seq int64) *core.Changes {
		text := strings.Repeat("x", 64<<10)
		return &core.Changes{
			Now: core.Time(seq), Events: []core.Event{{Seq: seq, At: core.Time(seq)}},
			Blobs: []core.Blob{{Hash: core.Hash{byte(seq)}, Data: []byte(text)}},
		}
	}
	seq := int64(0)
	for err == nil {
		seq++
		if err = s.Commit(t.Context(), epoch, change(seq)); err != nil {
			seq--
		}
	}
	if !errors.Is(err, store.ErrFull) || seq == 0 {
		t.Fatalf("got %v after %d commits, want ErrFull", err, seq)
	}
	if err := s.Probe(t.Context(), epoch); !errors.Is(err, store.ErrFull) {
		t.Fatalf("the probe says %v, want ErrFull", err)
	}
	img, err := s.Load(t.Context())
	if err != nil || img.Seq != seq {
		t.Fatalf("loaded seq %d, %v; want %d", img.Seq, err, seq)
	}
	pages(100_000)
	if err := s.Probe(t.Context(), epoch); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), epoch, change(seq+1)); err != nil {
		t.Fatal(err)
	}
}

// TestLogBeginsAnew: under steady writing the log does not grow without end.
func TestLogBeginsAnew(t *testing.T) {
	t.Parallel()
	e, s := limited(t, limits{copy: 64, renew: 256, last: 64})
	epoch, err := s.Lead(t.Context(), "a", time.Minute, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64<<10)
	for seq := range int64(1000) {
		c := &core.Changes{
			Events: []core.Event{{Seq: seq + 1}},
			Blobs:  []core.Blob{{Hash: core.Hash{byte(seq), byte(seq >> 8)}, Data: data}},
		}
		if err := s.Commit(t.Context(), epoch, c); err != nil {
			t.Fatal(err)
		}
	}
	st, err := os.Stat(e.path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	if st.Size() > 32<<20 {
		t.Errorf("the log has %d MiB after 64 MiB were written, and was to begin anew at 1", st.Size()>>20)
	}
}

// TestCrash: what was committed is there although nothing was closed.
func TestCrash(t *testing.T) {
	t.Parallel()
	e, s := raw(t)
	epoch, err := s.Lead(t.Context(), "a", time.Minute, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(20) {
		if err := s.Commit(t.Context(), epoch, &core.Changes{
			NextJob: core.JobID(seq),
			Events:  []core.Event{{Seq: seq + 1}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, suffix := range []string{"", "-wal"} { // what a killed process leaves
		b, err := os.ReadFile(e.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bireme.db"+suffix), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := Open(context.Background(), filepath.Join(dir, "bireme.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if img, err := again.Load(t.Context()); err != nil || img.Seq != 20 {
		t.Fatalf("loaded %+v, %v; want seq 20", img, err)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	_, s := raw(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); !errors.Is(err, errClosed) {
		t.Errorf("load: %v", err)
	}
	if err := s.Commit(t.Context(), 1, &core.Changes{}); !errors.Is(err, errClosed) {
		t.Errorf("commit: %v", err)
	}
}
