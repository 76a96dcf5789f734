//go:build e2e

package faults

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"bireme.dev/bireme/test/cluster"
)

func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		fmt.Fprintln(os.Stderr, "test/faults: needs root: it runs jobs in cgroups and mounts file systems")
		os.Exit(1)
	}
	if _, err := cluster.Bin(); err != nil {
		fmt.Fprintln(os.Stderr, "test/faults:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// soak reports whether the long form was asked for.
func soak() bool { return os.Getenv("BIREME_SOAK") != "" }

// seedOf returns the seed of a test: the one asked for, a fixed one, or for the long form a new one. It is printed.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(3)
	if soak() {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	if text := os.Getenv("BIREME_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("BIREME_SEED=%q: want a number", text)
		}
		seed = n
	}
	t.Logf("seed %d; run it again with: make soak SEED=%d", seed, seed)
	return seed
}

// postgres makes a database of its own for a test and gives its URL.
func postgres(t *testing.T) string {
	t.Helper()
	base := os.Getenv("TEST_POSTGRES_URL")
	if base == "" {
		t.Skip("TEST_POSTGRES_URL is not set")
	}
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("faults_%d_%d", os.Getpid(), rand.Uint32())
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
		if err != nil {
			t.Error(err)
		}
		db.Close()
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return u.String()
}

// pause is the pace of a fault, not a wait for something.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func lines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' })
}
