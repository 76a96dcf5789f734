package inherited

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that was open when a daemon started is not there for the programs of users.
func TestInheritedFilesStay(t *testing.T) { // not parallel: it changes files of the whole process
	path := filepath.Join(t.TempDir(), "roots")
	fd, err := unix.Open(path, unix.O_CREAT|unix.O_WRONLY, 0o600) // without O_CLOEXEC, as from a shell
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	seen := func() bool {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "ls", "-l", "/proc/self/fd").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(out), path)
	}
	if !seen() {
		t.Fatal("the file is not inherited to begin with: the test proves nothing")
	}
	if err := Keep(); err != nil {
		t.Fatal(err)
	}
	if seen() {
		t.Error("a program has the file that its parent was started with")
	}
}
