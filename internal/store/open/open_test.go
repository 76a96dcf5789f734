package open

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestStore(t *testing.T) {
	t.Parallel()
	s, err := Store(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "bireme.db"))
	if err != nil {
		t.Fatal(err)
	}
	if img, err := s.Load(t.Context()); err != nil || img.NextJob != 1 {
		t.Errorf("loaded %+v, %v", img, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestBadURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                             "sqlite:PATH",
		"sqlite:":                      "sqlite:PATH",
		"mysql://root@db/x":            `"mysql"`,
		"/var/lib/bireme.db":           "sqlite:PATH",
		"sqlite:/does/not/exist/x.db":  "no such file",
		"postgres://[::1]:nonsense/db": "port",
	} {
		s, err := Store(t.Context(), url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", url, err, want)
		}
		if s != nil {
			t.Errorf("%q: got a store with an error", url)
		}
	}
}
