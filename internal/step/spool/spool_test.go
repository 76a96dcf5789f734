package spool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

func TestOnlyAnEmptyDirectoryIsPristine(t *testing.T) {
	t.Parallel()
	id := wire.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	for _, name := range []string{"", "x", ".x", strings.Repeat("n", 255)} {
		dir := filepath.Join(t.TempDir(), "tmp")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, -1, os.Getgid()); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := pristine(dir, id); got != (name == "") {
			t.Errorf("with a file %q: pristine is %v", name, got)
		}
	}
}
