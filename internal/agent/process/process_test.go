package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestMain is also the process that holds a pid file in the tests below.
func TestMain(m *testing.M) {
	if path := os.Getenv("PROCESS_TEST_HOLD"); path != "" {
		if _, err := TakeLock(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		select {}
	}
	os.Exit(m.Run())
}

// hold starts a process that holds a pid file.
func hold(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PROCESS_TEST_HOLD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	var word string
	if _, err := fmt.Fscan(out, &word); err != nil || word != "held" {
		t.Fatalf("%q, %v", word, err)
	}
	return cmd
}

func TestHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pid")
	if p, err := Holder(path); p != nil || err != nil {
		t.Errorf("no file is held by %v, %v", p, err)
	}
	cmd := hold(t, path)
	if _, err := TakeLock(path); !errors.Is(err, ErrRunning) {
		t.Errorf("taking a held file: %v", err)
	}
	p, err := Holder(path)
	if err != nil || p == nil || p.Pid != cmd.Process.Pid {
		t.Fatalf("held by %v, %v; want process %d", p, err, cmd.Process.Pid)
	}
	defer p.Close()
	if err := p.End(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	// Its pid is still written there, and means nothing.
	if p, err := Holder(path); p != nil || err != nil {
		t.Errorf("a dead process's file is held by %v, %v", p, err)
	}
	l, err := TakeLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// A link in the place of a pid file leads to nobody's process, and nothing is written where it leads.
func TestLinkIsNoPidFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other, link := filepath.Join(dir, "other"), filepath.Join(dir, "pid")
	hold(t, other)
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	if p, err := Holder(link); p != nil || err == nil {
		t.Errorf("a link is held by %v, %v", p, err)
	}
	if l, err := TakeLock(link); l != nil || err == nil || errors.Is(err, ErrRunning) {
		t.Errorf("a link was locked: %v, %v", l, err)
	}
}
