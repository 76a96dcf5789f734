package gpu

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

// tools answers as programs would: by their name and arguments, from testdata. Which of those files are recorded from a
// real machine and which are written after the makers' documentation is in their names.
func tools(t *testing.T, root fstest.MapFS, answers map[string]string) Machine {
	return Machine{Root: root, Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
		file, ok := answers[strings.Join(append([]string{name}, args...), " ")]
		if !ok {
			return nil, exec.ErrNotFound
		}
		if strings.HasPrefix(file, "!") {
			return nil, errors.New(file[1:])
		}
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Error(err)
		}
		return b, nil
	}}
}

func look(t *testing.T, m Machine) []Seen {
	t.Helper()
	seen, errs := Look(t.Context(), m.Vendors())
	for _, err := range errs {
		t.Error(err)
	}
	return seen
}

func TestRecordedH200(t *testing.T) {
	t.Parallel()
	got := look(t, tools(t, nil, map[string]string{
		"nvidia-smi -q -x":   "nvidia-h200-recorded.xml",
		"nvidia-smi topo -m": "nvidia-topo-h200-recorded.txt",
		"nvidia-smi --query-gpu=compute_cap --format=csv,noheader": "nvidia-capability-h200-recorded.txt",
	}))
	want := []Seen{{
		Device: Device{
			Capability: 90,
			Vendor:     "nvidia", Name: "NVIDIA H200", Model: "h200", UUID: "GPU-f148849c-2d39-072e-e92c-e14fcadd1ce0",
			Bus:    "0000:00:06.0",
			Memory: 143771 * core.MiB, Files: []string{"/dev/nvidia0"}, Visible: "0",
		},
		Reading: Reading{Temp: 35, Power: 84.19, Counts: []Count{{What: "PCIe replays", Level: Warning, Allow: 8}}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDividedDevice(t *testing.T) {
	t.Parallel()
	root := fstest.MapFS{
		"proc/driver/nvidia/capabilities/gpu0/mig/gi1/access": {
			Data: []byte("DeviceFileMinor: 12\nDeviceFileMode: 292\n"),
		},
		"proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access": {Data: []byte("DeviceFileMinor: 13\n")},
		"proc/driver/nvidia/capabilities/gpu0/mig/gi2/access":     {Data: []byte("DeviceFileMinor: 21\n")},
		"proc/driver/nvidia/capabilities/gpu0/mig/gi2/ci0/access": {Data: []byte("DeviceFileMinor: 22\n")},
	}
	seen := look(t, tools(t, root, map[string]string{
		"nvidia-smi -q -x": "nvidia-mig-edited.xml", "nvidia-smi topo -m": "nvidia-topo-h200-recorded.txt",
		"nvidia-smi -L": "nvidia-mig-L-documented.txt",
	}))
	var list List
	for _, s := range seen {
		list = append(list, s.Device)
	}
	gres, units := list.Count()
	if diff := cmp.Diff([]core.Gres{{Name: "gpu", Type: "3g.71gb", Count: 1}, {Name: "gpu", Type: "1g.18gb", Count: 1}},
		gres); diff != "" {
		t.Fatal(diff)
	}
	if units[1].Memory != 16384*core.MiB || list[1].Visible != "MIG-77aa0a1b-0000-5555-8888-0123456789ab" ||
		list[1].Parent != list[0].Parent || !list[1].Part() {
		t.Errorf("%+v %+v", units[1], list[1])
	}
	// Who has one part sees the device, and of the capabilities only its own.
	denied := list.Denied([]core.GresAlloc{{Name: "gpu", Type: "1g.18gb", Units: []int32{1}}})
	if diff := cmp.Diff([]string{"/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia-caps/nvidia-cap13"}, denied); diff != "" {
		t.Error(diff)
	}
}

func TestOtherMakers(t *testing.T) {
	t.Parallel()
	drm := fstest.MapFS{
		"sys/bus/pci/devices/0000:05:00.0/drm/card1":      {},
		"sys/bus/pci/devices/0000:05:00.0/drm/renderD128": {},
	}
	card := fstest.MapFS{
		"sys/class/drm/card2/lmem_total_bytes": {Data: []byte("17179869184\n")},
		"sys/class/drm/card2/device/vendor":    {Data: []byte("0x8086\n")},
		"sys/class/drm/card2/device/device":    {Data: []byte("0x56c0\n")},
		"sys/class/drm/card2/device/uevent":    {Data: []byte("DRIVER=i915\nPCI_SLOT_NAME=0000:4d:00.0\n")},
		"sys/class/drm/card3/device/vendor":    {Data: []byte("0x8086\n")}, // inside a CPU
	}
	tt := fstest.MapFS{
		"dev/tenstorrent/0": {}, "sys/class/tenstorrent/tenstorrent!0/tt_card_type": {Data: []byte("p150a\n")},
		"sys/class/tenstorrent/tenstorrent!0/tt_serial": {Data: []byte("0000046131924062\n")},
	}
	for name, tc := range map[string]struct {
		root    fstest.MapFS
		answers map[string]string
		want    []Device
	}{
		"AMD, ROCm 7": {
			drm,
			map[string]string{
				"amd-smi static --json": "amd-static-documented.json",
				"amd-smi list --json":   "amd-list-documented.json", "amd-smi metric --json": "amd-metric-documented.json",
			},
			[]Device{{
				Vendor: "amd", Name: "AMD Instinct MI300X", Model: "mi300x",
				UUID: "80ff74a1-0000-1000-80b4-94e8b8f1c1f2", Bus: "0000:05:00.0", Memory: 196592 * core.MiB,
				Files: []string{"/dev/dri/card1", "/dev/dri/renderD128"}, Visible: "0",
			}},
		},
		"AMD, rocm-smi alone": {
			fstest.MapFS{},
			map[string]string{"rocm-smi --showproductname --showuniqueid --showbus --showmeminfo vram --showuse " +
				"--showtemp --json": "rocm-smi-documented.json"},
			[]Device{{
				Vendor: "amd", Name: "Radeon RX 7900 XT", Model: "rx7900", UUID: "0x3d6e1c4f5a2b7788",
				Bus: "0000:03:00.0", Memory: 21458059264, Visible: "0",
			}},
		},
		"Intel": {
			fstest.MapFS{},
			map[string]string{
				"xpu-smi discovery -j":      "xpu-discovery-documented.json",
				"xpu-smi discovery -d 0 -j": "xpu-device-documented.json", "xpu-smi stats -d 0 -j": "xpu-stats-documented.json",
			},
			[]Device{{
				Vendor: "intel", Name: "Intel(R) Data Center GPU Max 1550", Model: "max1550",
				UUID: "00000000-0000-0029-0000-002f0bd58086", Bus: "0000:29:00.0", Memory: 137438953472, Visible: "0",
			}},
		},
		"Intel, sysfs": {
			card, nil,
			[]Device{{
				Vendor: "intel", Name: "Intel GPU 0x56c0", Model: "intel", UUID: "INTEL-0000:4d:00.0",
				Bus: "0000:4d:00.0", Memory: 16 * core.GiB, Visible: "0",
			}},
		},
		"Tenstorrent": {
			fstest.MapFS{},
			map[string]string{"tt-smi -s --snapshot_no_tty": "tt-smi-documented.json"},
			[]Device{{
				Vendor: "tenstorrent", Name: "Tenstorrent n300 L", Model: "n300", UUID: "0100014211703033",
				Bus: "0000:01:00.0", Memory: 24 * core.GiB, Files: []string{"/dev/tenstorrent/0"}, Visible: "0",
			}},
		},
		"Tenstorrent, sysfs": {
			tt, nil,
			[]Device{{
				Vendor: "tenstorrent", Name: "Tenstorrent p150a", Model: "p150", UUID: "0000046131924062",
				Memory: 32 * core.GiB, Files: []string{"/dev/tenstorrent/0"}, Visible: "0",
			}},
		},
		"Gaudi": {
			fstest.MapFS{},
			map[string]string{"hl-smi -Q " + gaudiFields + " -f csv,noheader": "hl-smi-documented.csv"},
			[]Device{
				{
					Vendor: "intel", Name: "HL-225", Model: "gaudi2", UUID: "01P0-HL2080A0-15-TNPS34-03-05-07",
					Bus: "0000:19:00.0", Memory: 98304 * core.MiB, Visible: "3",
					Variable: "HABANA_VISIBLE_MODULES", Files: []string{"/dev/accel/accel0", "/dev/accel/accel_controlD0"},
				},
				{
					Vendor: "intel", Name: "HL-325L", Model: "gaudi3", UUID: "01P4-HL3090A0-18-U4V193-22-07-00",
					Bus: "0000:4d:00.0", Memory: 131072 * core.MiB, Visible: "1",
					Variable: "HABANA_VISIBLE_MODULES", Files: []string{"/dev/accel/accel1", "/dev/accel/accel_controlD1"},
				},
			},
		},
		"none": {fstest.MapFS{}, nil, nil},
	} {
		var got []Device
		for _, s := range look(t, tools(t, tc.root, tc.answers)) {
			got = append(got, s.Device)
			if tc.answers != nil && (s.Temp == 0 || name != "Tenstorrent" && s.Used == 0) {
				t.Errorf("%s: nothing is read of %+v", name, s.Reading)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"NVIDIA A100-SXM4-80GB": "a100", "NVIDIA GeForce RTX 4090": "rtx4090", "Tesla T4": "t4", "NVIDIA H200": "h200",
		"NVIDIA H100 80GB HBM3":                        "h100",
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": "rtxpro6000", "NVIDIA RTX 6000 Ada Generation": "rtx6000",
		"AMD Instinct MI300X": "mi300x",
		"Radeon RX 7900 XT":   "rx7900", "Intel(R) Data Center GPU Flex 170": "flex170",
		"Intel(R) Arc(TM) Pro B60 Graphics": "arcprob60", "": "",
	} {
		if got := Model(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestDenied(t *testing.T) {
	t.Parallel()
	list := List{
		{Model: "a100", Files: []string{"/dev/nvidia1"}},
		{Model: "t4", Files: []string{"/dev/nvidia2"}},
		{Model: "a100", Files: []string{"/dev/nvidia0"}},
		{Model: "t4"},
	}
	all := []string{"/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia0"}
	for name, tc := range map[string]struct {
		given []core.GresAlloc
		want  []string
	}{
		"none given":      {nil, all},
		"no gpu among it": {[]core.GresAlloc{{Name: "fpga", Units: []int32{0}}}, all},
		"by model": {
			[]core.GresAlloc{{Name: "gpu", Type: "a100", Units: []int32{2}}},
			[]string{"/dev/nvidia1", "/dev/nvidia2"},
		},
		"of two models": {[]core.GresAlloc{
			{Name: "gpu", Type: "a100", Units: []int32{0}},
			{Name: "gpu", Type: "t4", Units: []int32{1}},
		}, []string{"/dev/nvidia0"}},
		"without a model": {[]core.GresAlloc{{Name: "gpu", Units: []int32{2}}}, []string{"/dev/nvidia1", "/dev/nvidia2"}},
		"all":             {[]core.GresAlloc{{Name: "gpu", Units: []int32{0, 1, 2, 3}}}, nil},
		"by another name": {
			[]core.GresAlloc{{Name: "gpu", Type: "h200", Units: []int32{0}}},
			[]string{"/dev/nvidia2", "/dev/nvidia0"},
		},
		"not of this node": {
			[]core.GresAlloc{{Name: "gpu", Type: "h200", Units: []int32{1, 4}}},
			[]string{"/dev/nvidia1", "/dev/nvidia0"},
		},
	} {
		if diff := cmp.Diff(tc.want, list.Denied(tc.given)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	alike := List{{Model: "a100", Files: []string{"/dev/nvidia0"}}, {Model: "a100", Files: []string{"/dev/nvidia1"}}}
	if got := alike.Denied([]core.GresAlloc{{Name: "gpu", Type: "tesla", Units: []int32{1}}}); !cmp.Equal(
		got, []string{"/dev/nvidia0"}) {
		t.Errorf("under a name of the site's own %v is denied", got)
	}
	if got := (List{}).Denied(nil); got != nil {
		t.Errorf("a machine without GPUs denies %v", got)
	}
}

func TestFake(t *testing.T) {
	t.Parallel()
	list, err := Fake("H100:80GB:2")
	if err != nil {
		t.Fatal(err)
	}
	gres, units := list.Count()
	if len(gres) != 1 || gres[0] != (core.Gres{Name: "gpu", Type: "h100", Count: 2}) ||
		units[1] != (core.Unit{Name: "gpu", Type: "h100", Index: 1, Memory: 80 * core.GiB, Vendor: "fake"}) {
		t.Errorf("%v %v", gres, units)
	}
	for _, bad := range []string{"", "8", "A100,H100:2", "A100:0", "A100:900", "A100:2:3"} {
		if _, err := Fake(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

func TestLinks(t *testing.T) {
	t.Parallel()
	const matrix = "\t\x1b[4mGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tNIC0\tCPU Affinity\x1b[0m\n" +
		"GPU0\t X \tNV4\tSYS\tSYS\tSYS\tPXB\t0-31\n" +
		"GPU1\tNV4\t X \tSYS\tSYS\tSYS\tPXB\t0-31\n" +
		"GPU2\tSYS\tSYS\t X \tNV12\tNODE\tSYS\t32-63\n" +
		"GPU3\tSYS\tSYS\tNV12\t X \tNODE\tSYS\t32-63\n" +
		"GPU4\tSYS\tSYS\tNODE\tNODE\t X \tSYS\t32-63\n" +
		"NIC0\tPXB\tPXB\tSYS\tSYS\tSYS\t X\n\nLegend:\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
	if diff := cmp.Diff([]int32{1, 1, 2, 2, 0}, parseLinks(matrix, 5)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int32{0, 0}, parseLinks("", 2)); diff != "" {
		t.Error(diff)
	}
}
