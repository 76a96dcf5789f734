package postgres

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

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
