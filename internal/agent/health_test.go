package agent

import (
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
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
