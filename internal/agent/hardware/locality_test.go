package hardware

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/agent/gpu"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// twoSockets is a machine of two sockets of two cores of two threads, counted as kernels often do.
func twoSockets() fstest.MapFS {
	root := fstest.MapFS{}
	for cpu, at := range []struct {
		socket, core string
	}{{"0", "0"}, {"1", "0"}, {"0", "1"}, {"1", "1"}, {"0", "0"}, {"1", "0"}, {"0", "1"}, {"1", "1"}} {
		dir := "sys/devices/system/cpu/cpu" + string(rune('0'+cpu)) + "/topology/"
		root[dir+"physical_package_id"] = &fstest.MapFile{Data: []byte(at.socket + "\n")}
		root[dir+"core_id"] = &fstest.MapFile{Data: []byte(at.core + "\n")}
	}
	root["sys/bus/pci/devices/0000:17:00.0/local_cpulist"] = &fstest.MapFile{Data: []byte("1,3,5,7\n")}
	root["sys/bus/pci/devices/0000:18:00.0/local_cpulist"] = &fstest.MapFile{Data: []byte("0-7\n")}
	return root
}

func TestCPUsAreCountedByCore(t *testing.T) {
	t.Parallel()
	cpus := []int{0, 1, 2, 3, 4, 5, 6, 7}
	inOrder(twoSockets(), cpus)
	if diff := cmp.Diff([]int{0, 4, 2, 6, 1, 5, 3, 7}, cpus); diff != "" {
		t.Error(diff)
	}
	few := []int{3, 1}
	inOrder(fstest.MapFS{}, few)
	if diff := cmp.Diff([]int{3, 1}, few); diff != "" {
		t.Errorf("a kernel that says nothing: %s", diff)
	}
}

func TestSocketOfADevice(t *testing.T) {
	t.Parallel()
	cpus := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for bus, want := range map[string]int32{"0000:17:00.0": 2, "0000:18:00.0": 0, "0000:19:00.0": 0} {
		if got := socketOf(twoSockets(), bus, cpus); got != want {
			t.Errorf("%s is at socket %d, want %d", bus, got, want)
		}
	}
}

func TestNamesOfGPUs(t *testing.T) {
	t.Parallel()
	plain := Machine{GPUs: gpu.List{{Visible: "0"}, {Visible: "1"}, {Visible: "2"}, {Visible: "3"}}}
	parts := Machine{GPUs: gpu.List{
		{Visible: "MIG-a", Parent: "GPU-0"},
		{Visible: "MIG-b", Parent: "GPU-0"},
		{Visible: "1"},
	}}
	for name, tc := range map[string]struct {
		m      Machine
		units  []int32
		hidden bool
		want   string
	}{
		"seen among the others":     {plain, []int32{1, 3}, false, "1,3"},
		"the others are hidden":     {plain, []int32{1, 3}, true, "0,1"},
		"parts have names":          {parts, []int32{1}, false, "MIG-b"},
		"behind parts":              {parts, []int32{2}, false, "1"},
		"behind parts, hidden":      {parts, []int32{2}, true, "0"},
		"a machine that knows none": {Machine{}, []int32{5}, true, "5"},
	} {
		var units []string
		for _, u := range tc.units {
			units = append(units, string(rune('0'+u)))
		}
		v := "CUDA_VISIBLE_DEVICES=" + strings.Join(units, ",")
		l := &wire.Launch{Gres: []core.GresAlloc{{Name: "gpu", Units: tc.units}}, Env: []byte("A=1\x00" + v + "\x00")}
		l.Program.Tasks = []wire.Task{{Env: []string{v}}}
		tc.m.RenameUnits(l, tc.hidden)
		if want := "A=1\x00CUDA_VISIBLE_DEVICES=" + tc.want + "\x00"; string(l.Env) != want {
			t.Errorf("%s: %q, want %q", name, l.Env, want)
		}
		if want := "CUDA_VISIBLE_DEVICES=" + tc.want; l.Program.Tasks[0].Env[0] != want {
			t.Errorf("%s, of a task: %q, want %q", name, l.Program.Tasks[0].Env[0], want)
		}
	}
}

func TestOtherMakersHaveVariablesOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := Machine{GPUs: gpu.List{
		{Vendor: "nvidia", Visible: "0"},
		{Vendor: "intel", Visible: "0"},
		{Vendor: "intel", Visible: "1"},
	}}
	l := &wire.Launch{Gres: []core.GresAlloc{{Name: "gpu", Units: []int32{2}}}, Env: []byte("CUDA_VISIBLE_DEVICES=2\x00")}
	m.RenameUnits(l, false)
	if got, want := string(l.Env), "CUDA_VISIBLE_DEVICES=1\x00ZE_AFFINITY_MASK=1\x00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	m.GPUs = gpu.List{
		{Vendor: "intel", Visible: "3", Variable: "HABANA_VISIBLE_MODULES"},
		{Vendor: "intel", Visible: "1", Variable: "HABANA_VISIBLE_MODULES"},
	}
	l = &wire.Launch{Gres: []core.GresAlloc{{Name: "gpu", Units: []int32{1}}}, Env: []byte("CUDA_VISIBLE_DEVICES=1\x00")}
	m.RenameUnits(l, true) // modules keep their numbers
	if got, want := string(l.Env), "CUDA_VISIBLE_DEVICES=1\x00HABANA_VISIBLE_MODULES=1\x00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
