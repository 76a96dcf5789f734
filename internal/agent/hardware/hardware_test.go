package hardware

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func cpu(fsys fstest.MapFS, n, socket, core int) {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/", n)
	fsys[dir+"physical_package_id"] = &fstest.MapFile{Data: fmt.Appendln(nil, socket)}
	fsys[dir+"core_id"] = &fstest.MapFile{Data: fmt.Appendln(nil, core)}
}

func TestTopology(t *testing.T) {
	t.Parallel()
	twoSockets := fstest.MapFS{} // 2 sockets, 4 cores each, 2 threads
	for i := range 16 {
		cpu(twoSockets, i, i/4%2, i%4)
	}
	for name, tc := range map[string]struct {
		fs      fstest.MapFS
		cpus    []int
		s, c, t int32
	}{
		"whole machine": {twoSockets, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, 2, 4, 2},
		"one socket":    {twoSockets, []int{0, 1, 2, 3}, 1, 4, 1},
		"uneven cpuset": {twoSockets, []int{0, 1, 4}, 1, 3, 1},
		"no sysfs":      {fstest.MapFS{}, []int{0, 1}, 1, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, th := topology(tc.fs, tc.cpus)
			if s != tc.s || c != tc.c || th != tc.t {
				t.Errorf("%d sockets, %d cores, %d threads; want %d, %d, %d", s, c, th, tc.s, tc.c, tc.t)
			}
		})
	}
}

func TestMeminfo(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal:       16302812 kB\nMemAvailable:    8000000 kB\n")}}
	got, err := MemInfo(fsys, "MemTotal")
	if err != nil || got != 16302812*core.KiB {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := MemInfo(fsys, "Nothing"); err == nil {
		t.Error("a missing line gave no error")
	}
}

func TestOverride(t *testing.T) {
	t.Parallel()
	found := core.Hardware{CPUs: 8, Sockets: 1, Cores: 4, Threads: 2, Memory: core.GiB}
	for name, tc := range map[string]struct {
		o    Override
		want core.Hardware
	}{
		"nothing": {Override{}, found},
		"cpus":    {Override{CPUs: 6}, core.Hardware{CPUs: 6, Sockets: 1, Cores: 6, Threads: 1, Memory: core.GiB}},
		"shape": {
			Override{Sockets: 2, Cores: 8, Threads: 2},
			core.Hardware{CPUs: 32, Sockets: 2, Cores: 8, Threads: 2, Memory: core.GiB},
		},
		"gres": {Override{Gres: []core.Gres{{Name: "gpu", Type: "a100", Count: 8}}, Memory: 4 * core.GiB}, core.Hardware{
			CPUs: 8, Sockets: 1, Cores: 4, Threads: 2, Memory: 4 * core.GiB,
			Gres: []core.Gres{{Name: "gpu", Type: "a100", Count: 8}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := found
			tc.o.apply(&got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCPUSet(t *testing.T) {
	t.Parallel()
	m := Machine{Hardware: core.Hardware{CPUs: 4}, cpus: []int{2, 3, 6, 7}}
	for in, want := range map[string]string{"0": "2", "0-2": "2-3,6", "1,3": "3,7", "9": "", "x": "", "3-1": ""} {
		if got := m.CPUSet(in); got != want {
			t.Errorf("cpuset(%q) is %q, want %q", in, got, want)
		}
	}
	m.CPUs = 64 // emulated: more than there are
	if got := m.CPUSet("0-1"); got != "" {
		t.Errorf("emulated CPUs are bound to %q", got)
	}
}
