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
	for _, in := range []string{
		"", "A100:A100", "h100:", "24GB:8:16GB", "A100:x:y", "10.5", "nvidia:amd", "2:4",
		"A,,B", "8gib", "..", "4..2", "A100:3-4",
	} {
		_, err := ParseGPU(in)
		wantError(t, in, err)
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		"3600": 3600, "1h": 3600, "1 h": 3600, "90m": 5400, "2d": 172800, "1w": 604800, "30s": 30, "-5": -5, "0": 0,
		" 5m ": 300,
	} {
		if got, err := ParseDuration(in); err != nil || got != want {
			t.Errorf("%q = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "off", "1h30m", "1.5h", "1H", "5 min", "h", "-5m", "99999999999"} {
		_, err := ParseDuration(in)
		wantError(t, in, err)
	}
}

func FuzzDstack(f *testing.F) {
	for _, s := range []string{
		"A100:80GB:4", "40GB..80GB:1..8", "nvidia:tpu-x", "arm:8..", "1.5TB..", "512MB", "90m",
		"1_000",
	} {
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
		_, err := ParseDuration(s)
		check(err)
	})
}

// startsOdd tells names that only the old prefix could carry (tpu-8, tpu-tpu-x, tpu-amd): without it
// they read as something else.
func startsOdd(names []string) bool {
	for _, n := range names {
		if _, vendor := vendors[strings.ToLower(n)]; vendor || !isLetter(n[0]) ||
			strings.HasPrefix(strings.ToLower(n), "tpu-") {
			return true
		}
	}
	return false
}
