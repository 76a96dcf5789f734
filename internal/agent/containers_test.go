package agent

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// TestShownDevices: a container gets its job's devices and no others.
func TestShownDevices(t *testing.T) {
	t.Parallel()
	m := machine{gpus: gpu.List{
		{Vendor: "nvidia", UUID: "GPU-0", Files: []string{"/dev/nvidia0"}}, {Vendor: "nvidia", UUID: "GPU-1", Files: []string{"/dev/nvidia1"}},
		{Vendor: "amd", Files: []string{"/dev/dri/renderD128"}}, {Vendor: "other", Files: []string{"/dev/accel0"}},
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
		files, gpus := m.shown(&wire.Launch{Gres: []core.GresAlloc{{Name: "gpu", Units: tc.units}}})
		if diff := cmp.Diff([][]string{tc.files, tc.gpus}, [][]string{files, gpus}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
