package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whoever makes the directory first that root will name with --dir has nothing of it: its settings are not read, and a
// link in it leads to no file that is overwritten.
func TestFolderOfAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes folders of other users")
	}
	const mallory = 4002
	base := t.TempDir()
	target := filepath.Join(base, "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"standalone", "standalone --detach", "server", "agent --server 127.0.0.1:1"} {
		dir := filepath.Join(base, strings.ReplaceAll(command, " ", "_"))
		err := os.Mkdir(dir, 0o755)
		for _, name := range []string{"server.pid", "agent.pid", "log", "standalone.json"} {
			err = errors.Join(err, os.Symlink(target, filepath.Join(dir, name)))
		}
		if err := errors.Join(err, os.Chown(dir, mallory, mallory)); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := run(append(strings.Fields(command), "--dir", dir), &out, &errs)
		if said := errs.String(); code == 0 || !strings.Contains(said, dir) ||
			!strings.Contains(said, "it belongs to user 4002") {
			t.Errorf("biremed %s: status %d, %s", command, code, said)
		}
		if text, err := os.ReadFile(target); err != nil || string(text) != "precious" {
			t.Errorf("biremed %s wrote through a link: %q, %v", command, text, err)
		}
	}
}
