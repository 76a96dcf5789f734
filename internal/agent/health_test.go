package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"
)

func TestBuiltInChecks(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"proc/meminfo":     {Data: []byte("MemTotal:       1000 kB\nMemAvailable:     50 kB\n")},
		"proc/self/mounts": {Data: []byte("x /scratch ext4 rw 0 0\ny /my\\040data nfs rw 0 0\n")},
		"proc/7/comm":      {Data: []byte("python\n")},
		"proc/7/fd/3":      {Data: []byte("/dev/nvidia0"), Mode: fs.ModeSymlink},
		"proc/8/comm":      {Data: []byte("nvidia-persiste\n")},
		"proc/8/fd/3":      {Data: []byte("/dev/nvidia0"), Mode: fs.ModeSymlink},
		"proc/9/comm":      {Data: []byte("sh\n")},
		"proc/9/fd/0":      {Data: []byte("/dev/null"), Mode: fs.ModeSymlink},
		"proc/version":     {},
	}
	if scarce(root, 95) || !scarce(root, 94) {
		t.Error("95% of the memory is used")
	}
	if got := unmounted(root, []string{"/scratch/", "/my data", "/data"}); !slices.Equal(got, []string{"/data"}) {
		t.Errorf("not mounted: %q", got)
	}
	if got := holding(root, []string{"/dev/nvidia0"}); len(got) != 1 || got[7] != "python" {
		t.Errorf("who holds the GPU: %v", got)
	}
	dir := t.TempDir()
	if got := full([]string{dir, dir}, 100); got != nil {
		t.Errorf("nothing is more than full: %v", got)
	}
	if got := full([]string{dir, dir, "/no/such/folder"}, 0); len(got) > 1 { // an empty disk is none
		t.Errorf("a disk is told twice: %v", got)
	}
}

// TestProgramsSayOneLine: of a program that talks without end the first line is told and little is kept.
func TestProgramsSayOneLine(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "check")
	if err := os.WriteFile(program,
		[]byte("#!/bin/sh\nprintf '\\n  no scratch \\nmore\\n'; head -c 3000000 /dev/zero; exit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	a := &Agent{id: &identity{name: "n1"}}
	if line, err := a.runProgram(t.Context(), program, time.Minute); line != "no scratch" || err == nil {
		t.Errorf("got %q, %v", line, err)
	}
	var h head
	for range 100 {
		if n, err := h.Write(make([]byte, 1<<16)); n != 1<<16 || err != nil {
			t.Fatal(n, err)
		}
	}
	if h.Len() != 16*maxMessage {
		t.Errorf("%d bytes are kept", h.Len())
	}
}
