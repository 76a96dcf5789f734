package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// database is the URL of one schema.
type database string

func (d database) Open(t *testing.T) store.Store {
	t.Helper()
	s, err := Open(t.Context(), string(d))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var schemas atomic.Int64

// fresh makes a schema of the test's own in the database TEST_POSTGRES_URL names, and drops it afterwards.
func fresh(t testing.TB) database {
	t.Helper()
	base := os.Getenv("TEST_POSTGRES_URL")
	if base == "" {
		t.Skip("TEST_POSTGRES_URL is not set")
	}
	name := fmt.Sprintf("bireme_%d_%d", os.Getpid(), schemas.Add(1))
	conn, err := pgx.Connect(t.Context(), base)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the stores, which were opened later
		ctx := context.Background() // the test's own has ended
		if _, err := conn.Exec(ctx, "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	return database(base + sep + "search_path=" + url.QueryEscape(name) + "&pool_max_conns=5")
}

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database { return fresh(t) })
}

// TestConnectionLost: a commit whose connection breaks is an error, and the store continues with a new one.
func TestConnectionLost(t *testing.T) {
	t.Parallel()
	db := fresh(t)
	app := fmt.Sprintf("lost-%d", schemas.Add(1))
	s := database(string(db) + "&application_name=" + app).Open(t)
	epoch, err := s.Lead(t.Context(), "a", time.Minute, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), string(db)[:strings.LastIndex(string(db), "&pool_max_conns")])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	seq, broken := int64(0), 0
	for range 5 {
		if _, err := conn.Exec(t.Context(),
			`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1`, app); err != nil {
			t.Fatal(err)
		}
		for tries := 0; ; tries++ {
			err := s.Commit(t.Context(), epoch, &core.Changes{Events: []core.Event{{Seq: seq + 1}}})
			if err == nil {
				seq++
				break
			}
			if errors.Is(err, store.ErrStale) || tries == 20 {
				t.Fatal(err)
			}
			broken++
			img, err := s.Load(t.Context()) // as the engine does: the outcome is not known
			if err == nil {
				seq = img.Seq
			}
		}
	}
	if broken == 0 {
		t.Error("no commit failed although its connection was cut")
	}
	if img, err := s.Load(t.Context()); err != nil || img.Seq != seq {
		t.Fatalf("loaded %+v, %v; want seq %d", img, err, seq)
	}
}

// TestSchema: the tables and columns are those of schema.sql.
func TestSchema(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	want := columns(string(script))
	db := fresh(t)
	db.Open(t)
	conn, err := pgx.Connect(t.Context(), string(db)[:strings.LastIndex(string(db), "&pool_max_conns")])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(),
		`SELECT table_name || '.' || column_name || ' ' || data_type ||
 CASE is_nullable WHEN 'NO' THEN ' not null' ELSE '' END
 FROM information_schema.columns WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if d := cmp.Diff(got, want); d != "" {
		t.Errorf("migrated (-) schema.sql (+):\n%s", d)
	}
}

// columns lists "table.column type not null" of a script, in PostgreSQL's words.
func columns(script string) []string {
	var all []string
	types := map[string]string{
		"INTEGER": "bigint", "BIGINT": "bigint", "TEXT": "text", "BLOB": "bytea",
		"BOOLEAN": "boolean",
	}
	for _, m := range regexp.MustCompile(`(?ms)^CREATE TABLE (\w+) \((.*?)\)[^),]*;$`).FindAllStringSubmatch(script, -1) {
		key := ""
		if k := regexp.MustCompile(`PRIMARY KEY \((.*?)\)`).FindStringSubmatch(m[2]); k != nil {
			key = k[1]
		}
		for _, c := range regexp.MustCompile(
			`(?m)(?:^|, )\s*(\w+) +(INTEGER|BIGINT|TEXT|BLOB|BOOLEAN)( [^,\n]*)?`).FindAllStringSubmatch(m[2], -1) {
			line := m[1] + "." + c[1] + " " + types[c[2]]
			if strings.Contains(c[3], "NOT NULL") || strings.Contains(c[3], "PRIMARY KEY") ||
				strings.Contains(", "+key+",", ", "+c[1]+",") {
				line += " not null"
			}
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store {
		s, err := Open(b.Context(), string(fresh(b)))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
		return s
	})
}
