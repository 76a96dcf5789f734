package agent

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/agent/hardware"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// TestShownDevices: a container gets its job's devices and no others.
func TestShownDevices(t *testing.T) {
	t.Parallel()
	m := hardware.Machine{GPUs: gpu.List{
		{Vendor: "nvidia", UUID: "GPU-0", Files: []string{"/dev/nvidia0"}},
		{Vendor: "nvidia", UUID: "GPU-1", Files: []string{"/dev/nvidia1"}},
		{Vendor: "amd", Files: []string{"/dev/dri/renderD128"}},
		{Vendor: "other", Files: []string{"/dev/accel0"}},
	}}
	for name, tc := range map[string]struct {
		units       []int32
		files, gpus []string
	}{
		"none":          {},
		"NVIDIA's":      {units: []int32{1}, gpus: []string{"GPU-1"}},
		"AMD's":         {units: []int32{2}, files: []string{"/dev/kfd", "/dev/dri/renderD128"}},
		"another maker": {units: []int32{3}, files: []string{"/dev/accel0"}},
		"unknown":       {units: []int32{9}},
	} {
		files, gpus := m.ShownDevices(&wire.Launch{Gres: []core.GresAlloc{{Name: "gpu", Units: tc.units}}})
		if diff := cmp.Diff([][]string{tc.files, tc.gpus}, [][]string{files, gpus}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestSweep: a container of ours that nobody knows is removed although nobody asks, and one that cannot be keeps no
// other.
func TestSweep(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "containers"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	removed := make(chan string, 100)
	engine := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete && r.URL.Path == "/containers/stuck":
			w.WriteHeader(http.StatusInternalServerError)
		case r.Method == http.MethodDelete:
			select {
			case removed <- r.URL.Path:
			default:
			}
		default:
			fmt.Fprint(
				w, `[{"Id":"lives","Labels":{"dev.bireme.key":"1.1.batch"}},{"Id":"stuck","Labels":{"dev.bireme.key":"2.1.batch"}},
				{"Id":"late","Labels":{"dev.bireme.key":"3.1.batch"}}]`)
		}
	}))
	engine.Listener = l
	engine.Start()
	defer engine.Close()
	c := newContainers(slog.New(slog.DiscardHandler), &Options{Dir: dir, Engine: filepath.Join(dir, "sock")}, "n1",
		&ledger{})
	c.alive, c.every = func(key string) bool { return key == "1.1.batch" }, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx) }()
	for range 3 {
		if path := <-removed; path != "/containers/late" {
			t.Errorf("%s was removed", path)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestNoted: directories are looked at for launches in containers alone, also for those of an agent before this one.
func TestNoted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ofJob := func(job int64) wire.Key { return wire.Key{Job: core.JobID(job), Attempt: 1, Step: wire.BatchStep} }
	folder := func(k wire.Key) string { return filepath.Join(dir, "containers", k.String()) }
	for job := range int64(2) {
		if err := os.MkdirAll(folder(ofJob(1+job)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := newContainers(slog.New(slog.DiscardHandler), &Options{Dir: dir}, "n1", &ledger{})
	if err := os.Mkdir(folder(ofJob(3)), 0o700); err != nil {
		t.Fatal(err)
	}
	c.note(ofJob(4))
	if err := os.Mkdir(folder(ofJob(4)), 0o700); err != nil {
		t.Fatal(err)
	}
	c.forget([]wire.Key{ofJob(1), ofJob(3), ofJob(4), ofJob(5)})
	for job, want := range map[int64]bool{1: false, 2: true, 3: true, 4: false} { // nobody launched 3 in a container
		if _, err := os.Stat(folder(ofJob(job))); (err == nil) != want {
			t.Errorf("folder of job %d: %v", job, err)
		}
	}
	if c.noted(ofJob(1)) || !c.noted(ofJob(2)) || c.noted(ofJob(3)) || c.noted(ofJob(4)) {
		t.Errorf("it remembers %v", c.ours)
	}
}
