//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// pty is a command's terminal, seen from the other side.
type pty struct {
	f    *os.File
	cmd  *exec.Cmd
	seen string
}

// openPTY starts a command on a terminal of a size.
func openPTY(t *testing.T, cmd *exec.Cmd, rows, cols uint16) *pty {
	t.Helper()
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(f.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{f: f, cmd: cmd}
	p.size(t, rows, cols)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	err = cmd.Start()
	_ = theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *pty) size(t *testing.T, rows, cols uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.f.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
		t.Fatal(err)
	}
}

// resize changes the size; the kernel tells the command.
func (p *pty) resize(t *testing.T, rows, cols uint16) { t.Helper(); p.size(t, rows, cols) }

// until reads until all texts have come, one after the other.
func (p *pty) until(t *testing.T, texts ...string) {
	t.Helper()
	buf := make([]byte, 4096)
	for _, text := range texts {
		for !strings.Contains(p.seen, text) {
			n, err := p.f.Read(buf)
			if err != nil {
				t.Fatalf("%q does not come: %v\n%s", text, err, p.seen)
			}
			p.seen += string(buf[:n])
		}
		_, p.seen, _ = strings.Cut(p.seen, text)
	}
}
