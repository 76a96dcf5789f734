package local

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/core"
)

// A socket has its mode from the moment it can be seen: what stands in its place until then is what stood there before.
func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	modes := make(chan os.FileMode, 1)
	stop := make(chan struct{})
	go func() {
		defer close(modes)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if st, err := os.Lstat(path); err == nil && st.Mode().Perm() != 0o666 {
				select {
				case modes <- st.Mode():
				default:
				}
			}
		}
	}()
	for range 200 {
		l, err := Listen(path, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Listen(path, 0o666); core.CodeOf(err) != core.Conflict {
			t.Fatalf("a second one on the same path: %v", err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("what is left: %v", err)
		}
	}
	close(stop)
	for m := range modes {
		t.Errorf("the socket was there with mode %v", m)
	}
}
