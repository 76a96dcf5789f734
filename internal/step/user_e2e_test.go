//go:build e2e

package step

import (
	"os"
	"path/filepath"
	"testing"

	"bireme.dev/bireme/internal/wire"
)

// A user of a directory runs with the groups the directory knows, and one that is slow to answer holds nobody else up.
func TestDirectoryGroups(t *testing.T) {
	bin := t.TempDir()
	script := `#!/bin/sh
case "$*" in
"passwd 70001") echo "bob:*:70001:70000:Bob:/net/bob:/bin/zsh" ;;
"initgroups bob") echo "bob  70000 70005" ;;
"passwd 70002") while [ ! -e ` + bin + `/go ]; do sleep 0.02; done; exit 2 ;;
*) exit 2 ;;
esac
`
	if err := os.WriteFile(filepath.Join(bin, "getent"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	a := startKeeper(t, "none")
	if err := os.Chmod(a.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	slow := a.batch(1, "id -G")
	slow.Identity = wire.Identity{UID: 70002, GID: 70002}
	slow.Stdio.Stdout = filepath.Join(a.dir, "1.out")
	a.launch(slow)
	l := a.batch(2, "id -G")
	l.Identity = wire.Identity{UID: 70001, GID: 70000, Name: "bob"}
	l.Stdio.Stdout = filepath.Join(a.dir, "2.out")
	if x, out := a.run(l); out != "70000 70005\n" {
		t.Errorf("got %q, %+v", out, x)
	}
	if err := os.WriteFile(filepath.Join(bin, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if x, out := a.exited(slow.Key); out != "70002\n" {
		t.Errorf("got %q, %+v", out, x)
	}
}
