package step

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What a task finds in its output comes whole where it is read, and holds nobody up where it is not.
func TestTell(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("line\n", 60000) // more than a pipe holds
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // so nobody else reads it
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.SetNonblock(int(f.Fd()), false); err != nil { // as tasks have it
		t.Fatal(err)
	}
	tell(int(f.Fd()), text)

	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		tell(int(w.Fd()), text)
		w.Close()
	}()
	if got, err := io.ReadAll(r); err != nil || string(got) != text {
		t.Errorf("%d bytes of %d came: %v", len(got), len(text), err)
	}
}
