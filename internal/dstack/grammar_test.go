package dstack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
)

func counts(lo, hi int64) span[int64] { return span[int64]{lo, hi, true, true} }
func from(lo int64) span[int64]       { return span[int64]{min: lo, hasMin: true} }

var allFields = cmp.AllowUnexported(gpuSpec{}, cpuSpec{}, span[int64]{}, span[core.Bytes]{})

// The vectors are what dstack 0.22.5 makes of each input.
func TestParseGPU(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]gpuSpec{
		"4":                        {count: counts(4, 4), given: true},
		"A100":                     {names: []string{"A100"}},
		"A100:2":                   {names: []string{"A100"}, count: counts(2, 2), given: true},
		"A100:80GB:2":              {names: []string{"A100"}, count: counts(2, 2), given: true, memory: "80GB"},
		"80GB":                     {memory: "80GB"},
		"80GB..:2..4":              {memory: "80GB..", count: counts(2, 4), given: true},
		"16..24GB:2":               {memory: "16..24GB", count: counts(2, 2), given: true},
		"A10G,A100:40GB..80GB:1..": {names: []string{"A10G", "A100"}, memory: "40GB..80GB", count: from(1), given: true},
		"nvidia":                   {vendor: "nvidia"},
		"amd:MI300X:8":             {vendor: "amd", names: []string{"MI300X"}, count: counts(8, 8), given: true},
		"tpu:v5litepod-8":          {vendor: "google", names: []string{"v5litepod-8"}},
		"tt":                       {vendor: "tenstorrent"},
		"1..":                      {count: from(1), given: true},
		"0":                        {count: counts(0, 0), given: true},
		"A100:80":                  {names: []string{"A100"}, count: counts(80, 80), given: true},
	} {
		got, err := parseGPU(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if diff := cmp.Diff(want, got, allFields); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	for _, in := range []string{"A100:A100", "h100:", "24GB:8:16GB", "A100:x:y", "10.5", ""} {
		if g, err := parseGPU(in); err == nil {
			t.Errorf("%q: taken as %+v", in, g)
		}
	}
}

func TestParseCPU(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]cpuSpec{
		"4":       {count: counts(4, 4), given: true},
		"arm:8":   {arch: "arm", count: counts(8, 8), given: true},
		"x86:2..": {arch: "x86", count: from(2), given: true},
		"2..8":    {count: counts(2, 8), given: true},
		"8..":     {count: from(8), given: true},
		"..8":     {count: span[int64]{max: 8, hasMax: true}, given: true},
		"arm":     {arch: "arm"},
	} {
		got, err := parseCPU(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if diff := cmp.Diff(want, got, allFields); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	for _, in := range []string{"x86:arm", "4:4", "sparc:2", "-1", ""} {
		if c, err := parseCPU(in); err == nil {
			t.Errorf("%q: taken as %+v", in, c)
		}
	}
}

func TestParseSizes(t *testing.T) {
	t.Parallel()
	both := func(lo, hi core.Bytes) span[core.Bytes] { return span[core.Bytes]{lo, hi, true, true} }
	for in, want := range map[string]span[core.Bytes]{
		"8GB": both(8*core.GiB, 8*core.GiB), "8": both(8*core.GiB, 8*core.GiB),
		"8..16GB":       both(8*core.GiB, 16*core.GiB),
		"8GB..":         {min: 8 * core.GiB, hasMin: true},
		"..16GB":        {max: 16 * core.GiB, hasMax: true},
		"512MB":         both(512*core.MiB, 512*core.MiB),
		"1TB":           both(1024*core.GiB, 1024*core.GiB),
		"1.5":           both(1536*core.MiB, 1536*core.MiB),
		"8 GB .. 16 GB": both(8*core.GiB, 16*core.GiB),
		"16gb":          both(16*core.GiB, 16*core.GiB),
	} {
		got, err := parseSizes(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if diff := cmp.Diff(want, got, allFields); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
	for _, in := range []string{"..", "16GB..8GB", "8gib", "8G", "x", "", "9999999999TB"} {
		if s, err := parseSizes(in); err == nil {
			t.Errorf("%q: taken as %+v", in, s)
		}
	}
}

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]core.Seconds{
		"3600": 3600, "1h": 3600, "1 h": 3600, "90m": 5400, "2d": 172800, "1w": 604800, "0": 0,
	} {
		if got, err := parseDuration(in); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "1h30m", "1.5h", "1H", "5 min", "-1", "99999999999999999999"} {
		if d, err := parseDuration(in); err == nil {
			t.Errorf("%q: taken as %d", in, d)
		}
	}
}

func TestRunName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for seed := uint64(0); seed < 3000; seed++ {
		name := RunName(seed, func(n string) bool { return seen[n] })
		if err := CheckName(name); err != nil || seen[name] {
			t.Fatalf("seed %d: %q, seen %v, %v", seed, name, seen[name], err)
		}
		seen[name] = true
	}
}

func TestRunEnv(t *testing.T) {
	t.Parallel()
	gpu := func(units ...int32) []core.GresAlloc {
		return []core.GresAlloc{{Name: "gpu", Type: "a100", Units: units}}
	}
	job := &core.Job{
		ID: 7, Spec: &core.Spec{Run: "train"},
		Alloc: &core.Alloc{Nodes: []core.NodeAlloc{{Node: "n2", Gres: gpu(0, 1)}, {Node: "n1", Gres: gpu(3)}}},
	}
	addr := func(n core.NodeName) string { return map[core.NodeName]string{"n1": "127.0.1.1", "n2": "127.0.1.2"}[n] }
	want := []string{
		"DSTACK_RUN_NAME=train", "DSTACK_RUN_ID=id-1", "DSTACK_JOB_ID=7", "DSTACK_NODES_NUM=2", "DSTACK_NODE_RANK=1",
		"DSTACK_NODES_IPS=127.0.1.2\n127.0.1.1", "DSTACK_MASTER_NODE_IP=127.0.1.2", "DSTACK_GPUS_PER_NODE=1",
		"DSTACK_GPUS_NUM=3",
	}
	if diff := cmp.Diff(want, RunEnv(job, "id-1", 1, addr)); diff != "" {
		t.Error(diff)
	}
	for name, j := range map[string]*core.Job{
		"no run": {Spec: &core.Spec{}, Alloc: job.Alloc}, "not started": {Spec: job.Spec}, "nil": nil,
	} {
		if got := RunEnv(j, "", 0, addr); got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestTotals: what GPUs are to have together is each one's share of it.
func TestTotals(t *testing.T) {
	t.Parallel()
	for gpu, want := range map[string]string{
		"{count: 2, total_memory: 160GB..}":                    "2 of 80 GB or more",
		"{count: 4, memory: 40GB.., total_memory: 96GB..}":     "4 of 40 GB or more",
		"{total_memory: 80GB}":                                 "1 of 80 GB",
		"{memory: 40GB.., total_memory: 160GB..}":              "4 of 40 GB or more",
		"{count: 1..2, memory: 40GB.., total_memory: 160GB..}": "2 of 80 GB or more",
		"{count: 2, total_memory: ..96GB}":                     "2 of at most 48 GB",
		"{name: H100, compute_capability: 9.0}":                "1 of H100, compute capability 9.0 or more",
		"{compute_capability: [7, 5]}":                         "1 of compute capability 7.5 or more",
		`{compute_capability: "8.9", vendor: nvidia}`:          "1 of nvidia, compute capability 8.9 or more",
	} {
		task, err := Parse("x.yml", []byte("type: task\ncommands: [x]\nresources: {gpu: "+gpu+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", gpu, err)
			continue
		}
		if got := fmt.Sprintf("%d of %s", task.GPUs.Count, task.GPUAsk); got != want {
			t.Errorf("%s: %s, want %s", gpu, got, want)
		}
	}
}
