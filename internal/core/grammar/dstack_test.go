package grammar

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestGPU(t *testing.T) {
	t.Parallel()
	mem := func(lo, hi float64) *Range[float64] {
		r := Range[float64]{Min: &lo}
		if hi > 0 {
			r.Max = &hi
		}
		return &r
	}
	counts := func(lo, hi int) Range[int] { return Range[int]{Min: &lo, Max: &hi} }
	for in, want := range map[string]GPU{
		"4":                        {Count: Exactly(4)},
		"0":                        {Count: Exactly(0)},
		"1..":                      {Count: AtLeast(1)},
		"A100":                     {Names: []string{"A100"}, Count: AtLeast(1)},
		"A100:2":                   {Names: []string{"A100"}, Count: Exactly(2)},
		"A100:80":                  {Names: []string{"A100"}, Count: Exactly(80)},
		"A100:80GB:2":              {Names: []string{"A100"}, Count: Exactly(2), Memory: mem(80, 80)},
		"80GB":                     {Count: AtLeast(1), Memory: mem(80, 80)},
		"16gb":                     {Count: AtLeast(1), Memory: mem(16, 16)},
		"80GB..:2..4":              {Count: counts(2, 4), Memory: mem(80, 0)},
		"16..24GB:2":               {Count: Exactly(2), Memory: mem(16, 24)},
		"A10G,A100:40GB..80GB:1..": {Names: []string{"A10G", "A100"}, Count: AtLeast(1), Memory: mem(40, 80)},
		"nvidia":                   {Vendor: "nvidia", Count: AtLeast(1)},
		"NVIDIA:A100":              {Vendor: "nvidia", Names: []string{"A100"}, Count: AtLeast(1)},
		"amd:MI300X:8":             {Vendor: "amd", Names: []string{"MI300X"}, Count: Exactly(8)},
		"tpu:v5litepod-8":          {Vendor: "google", Names: []string{"v5litepod-8"}, Count: AtLeast(1)},
		"tt":                       {Vendor: "tenstorrent", Count: AtLeast(1)},
		"tpu-v2-8":                 {Names: []string{"v2-8"}, Count: AtLeast(1), Legacy: true},
		" A100 , H100 : 2 ":        {Names: []string{"A100", "H100"}, Count: Exactly(2)},
	} {
		got, err := ParseGPU(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: -want +got\n%s", in, diff)
		}
	}
	for _, in := range []string{"", "A100:A100", "h100:", "24GB:8:16GB", "A100:x:y", "10.5", "nvidia:amd", "2:4", "A,,B", "8gib", "..", "4..2", "A100:3-4"} {
		_, err := ParseGPU(in)
		wantError(t, in, err)
	}
}

func TestCPU(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"4": "4", "arm:8": "arm:8", "x86:2..": "x86:2..", "2..8": "2..8", "8..": "8..", "..8": "..8", "arm": "arm:2..", "8:ARM": "arm:8", "1_0": "10", " 4.0 ": "4",
	} {
		if got, err := ParseCPU(in); err != nil || got.String() != want {
			t.Errorf("%q = %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x86:arm", "4:4", "sparc:2", ":", "-2", "4..2", "1.5", "_1", "4."} {
		_, err := ParseCPU(in)
		wantError(t, in, err)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"8GB": "8GB", "8": "8GB", "8..16GB": "8GB..16GB", "8GB..": "8GB..", "..16GB": "..16GB", "512MB": "512MB", "1TB": "1TB",
		"1.5": "1536MB", "8 GB .. 16 GB": "8GB..16GB", "32gb": "32GB", "0.1GB": "0.1GB", "1_000GB": "1000GB",
	} {
		got, err := ParseSizes(in)
		if err != nil || FormatSizes(got) != want {
			t.Errorf("%q = %s, %v, want %s", in, FormatSizes(got), err, want)
		}
	}
	for _, in := range []string{"", "..", "16GB..8GB", "8gib", "8G", "8KB", "GB", "1e3", "inf", "nan", "1..2..3", "0x8", "-1", "_8"} {
		_, err := ParseSizes(in)
		wantError(t, in, err)
	}
	if gb, err := ParseSize("2TB"); gb != 2048 || err != nil {
		t.Errorf("2TB = %v GB, %v", gb, err)
	}
	r, err := ParseCounts("1..8")
	if err != nil || !r.Contains(1) || !r.Contains(8) || r.Contains(9) || r.Contains(0) || !AtLeast(3).Contains(99) {
		t.Errorf("1..8 = %v, %v", r, err)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"3600": 3600, "1h": 3600, "1 h": 3600, "90m": 5400, "2d": 172800, "1w": 604800, "30s": 30, "-5": -5, "0": 0, " 5m ": 300,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "off", "1h30m", "1.5h", "1H", "5 min", "h", "-5m", "99999999999"} {
		_, err := ParseDuration(in)
		wantError(t, in, err)
	}
	if _, off, err := ParseDurationOff("off"); !off || err != nil {
		t.Errorf("off = %v, %v", off, err)
	}
	if sec, off, err := ParseDurationOff("2h"); sec != 7200 || off || err != nil {
		t.Errorf("2h = %d, %v, %v", sec, off, err)
	}
	_, _, err := ParseDurationOff("-5")
	wantError(t, "-5", err)
}

func FuzzDstack(f *testing.F) {
	for _, s := range []string{"A100:80GB:4", "40GB..80GB:1..8", "nvidia:tpu-x", "arm:8..", "1.5TB..", "512MB", "90m", "1_000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		check := func(err error) bool {
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(s) || e.Input != s {
					t.Fatalf("%q: bad error %#v", s, err)
				}
			}
			return err == nil
		}
		if v, err := ParseGPU(s); check(err) && !startsOdd(v.Names) {
			w, err := ParseGPU(v.String())
			v.Legacy = w.Legacy
			if diff := cmp.Diff(v, w); err != nil || diff != "" {
				t.Fatalf("gpu %q is %q: %v\n%s", s, v, err, diff)
			}
		}
		if v, err := ParseCPU(s); check(err) {
			if w, err := ParseCPU(v.String()); err != nil || w.String() != v.String() {
				t.Fatalf("cpu %q is %q, then %q: %v", s, v, w, err)
			}
		}
		if v, err := ParseSizes(s); check(err) {
			w, err := ParseSizes(FormatSizes(v))
			if diff := cmp.Diff(v, w); err != nil || diff != "" {
				t.Fatalf("size %q is %q: %v\n%s", s, FormatSizes(v), err, diff)
			}
		}
		_, err := ParseDuration(s)
		check(err)
	})
}

// startsOdd tells names that only the old prefix could carry (tpu-8, tpu-tpu-x, tpu-amd): without it
// they read as something else.
func startsOdd(names []string) bool {
	for _, n := range names {
		if _, vendor := vendors[strings.ToLower(n)]; vendor || !isLetter(n[0]) || strings.HasPrefix(strings.ToLower(n), "tpu-") {
			return true
		}
	}
	return false
}
