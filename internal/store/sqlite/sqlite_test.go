package sqlite

import (
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"bireme.dev/bireme/internal/store"
	"bireme.dev/bireme/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database { return database(filepath.Join(t.TempDir(), "bireme.db")) })
}

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) store.Store {
		s, err := Open(b.Context(), filepath.Join(b.TempDir(), "bireme.db"))
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
