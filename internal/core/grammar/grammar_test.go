package grammar

import (
	"errors"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core/taskset"
)

// wantError holds that err is an *Error that points into the input and says what would be right.
func wantError(t *testing.T, input string, err error) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Errorf("%q: error %v, want an *Error", input, err)
		return
	}
	if e.Input != input || e.Pos < 0 || e.Pos > len(input) || e.What == "" || e.Msg == "" || e.Want == "" {
		t.Errorf("%q: incomplete error %#v", input, e)
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	_, err := ParseTimeLimit("1h")
	const want = `invalid time limit "1h": unexpected 'h' at position 1; expected minutes, m:s, h:m:s, d-h, d-h:m, ` +
		`d-h:m:s or UNLIMITED`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestTimeLimit(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		minutes       int64
		squeue, clock string
	}{
		"30":         {30, "30:00", "00:30:00"},
		"30:00":      {30, "30:00", "00:30:00"},
		"1:30":       {2, "2:00", "00:02:00"},
		"0:30":       {1, "1:00", "00:01:00"},
		"1:00:00":    {60, "1:00:00", "01:00:00"},
		"1-0":        {1440, "1-00:00:00", "1-00:00:00"},
		"1-1:1":      {1501, "1-01:01:00", "1-01:01:00"},
		"2-12:30:30": {3631, "2-12:31:00", "2-12:31:00"},
		"90:00:00":   {5400, "3-18:00:00", "3-18:00:00"},
		"99:99:99":   {6041, "4-04:41:00", "4-04:41:00"},
		"1-25":       {2940, "2-01:00:00", "2-01:00:00"},
		"0":          {Unlimited, "UNLIMITED", "UNLIMITED"},
		"-1":         {Unlimited, "UNLIMITED", "UNLIMITED"},
		"unlimited":  {Unlimited, "UNLIMITED", "UNLIMITED"},
		"INFINITE":   {Unlimited, "UNLIMITED", "UNLIMITED"},
	} {
		got, err := ParseTimeLimit(in)
		if err != nil || got != want.minutes {
			t.Errorf("%q = %d, %v, want %d", in, got, err, want.minutes)
		}
		if a, b := FormatLimit(got), FormatClockLimit(got); a != want.squeue || b != want.clock {
			t.Errorf("%q prints %s and %s, want %s and %s", in, a, b, want.squeue, want.clock)
		}
	}
	for _, in := range []string{
		"", "abc", "1h", "1:", ":5", "1-:", "1:2:3:4", " 5", "5.5", "inf", "1-1-1", "-", "1d",
		"-5", "99999999999",
	} {
		_, err := ParseTimeLimit(in)
		wantError(t, in, err)
	}
}

func TestFormatElapsed(t *testing.T) {
	t.Parallel()
	for sec, want := range map[int64]string{
		0: "0:00", 5: "0:05", 82: "1:22", 3600: "1:00:00", 93784: "1-02:03:04",
		-3: "INVALID",
	} {
		if got := FormatElapsed(sec); got != want {
			t.Errorf("%d s = %s, want %s", sec, got, want)
		}
	}
	if FormatLimit(NotSet) != "NOT_SET" || FormatClockLimit(NotSet) != "Partition_Limit" || FormatClock(-1) != "INVALID" {
		t.Error("a limit that is not set prints wrongly")
	}
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]struct {
		mib  int64
		text string
	}{
		"0":          {0, "0"},
		"10":         {10, "10M"},
		"4000":       {4000, "4000M"},
		"4000MB":     {4000, "4000M"},
		"4G":         {4096, "4G"},
		"4gb":        {4096, "4G"},
		"1T":         {1 << 20, "1T"},
		"1K":         {1, "1M"},
		"1024K":      {1, "1M"},
		"1500K":      {2, "2M"},
		"1000":       {1000, "1000M"},
		"1536":       {1536, "1.50G"},
		"1280":       {1280, "1280M"},
		"2560":       {2560, "2.50G"},
		"65536":      {65536, "64G"},
		"1048577":    {1048577, "1048577M"},
		"1573376":    {1573376, "1.50T"},
		"1573888":    {1573888, "1537G"},
		"525312":     {525312, "513G"},
		"1610612736": {1610612736, "1.50P"},
	} {
		got, err := ParseMemory(in)
		if err != nil || got != want.mib || FormatMemory(got) != want.text {
			t.Errorf("%q = %d (%s), %v, want %d (%s)", in, got, FormatMemory(got), err, want.mib, want.text)
		}
	}
	for _, in := range []string{
		"", "1.5G", "4X", "1Q", "-5", "4GiB", "4 G", "4GB.", "0x10", "G",
		"99999999999999999999", "9999999999T",
	} {
		_, err := ParseMemory(in)
		wantError(t, in, err)
	}
}

// The displays are what squeue %K of Slurm 22.05.8 prints for a held array.
func TestArray(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"5-20%4":         "5-20%4",
		"1-7:2":          "1,3,5,7",
		"1-7:2%3":        "1,3,5,7%3",
		"1,3,5":          "1,3,5",
		"1-11:2":         "1,3,5,7,9,11",
		"1-13:2":         "1-13:2",
		"0-30:10":        "0,10,20,30",
		"0-40:10":        "0,10,20,30,40",
		"0-50:10":        "0-50:10",
		"0-10:2":         "0,2,4,6,8,10",
		"0-15:3":         "0-15:3",
		"1-11:2,13":      "1-13:2",
		"0-12:3,14":      "0,3,6,9,12,14",
		"1,3-20":         "1,3-20",
		"3,5%1":          "3,5%1",
		"5,4,3":          "3-5",
		"1%0":            "1",
		"1-40:3,2":       "1-2,4,7,10,13,16,19,22,25,28,31,34,37,40",
		"1-20000:3":      "1-19999:3",
		"1-99:2,200":     "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41,43...",
		"0-120:2,3%17":   "0,2-4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42...%17",
		"1-9,13-20%4":    "1-9,13-20%4",
		"5,10-67:3":      "5,10,13,16,19,22,25,28,31,34,37,40,43,46,49,52,55,58,61,64,67",
		"5,10-64:3,100":  "5,10,13,16,19,22,25,28,31,34,37,40,43,46,49,52,55,58,61,64,1...",
		"1000-1100:2,17": "17,1000,1002,1004,1006,1008,1010,1012,1014,1016,1018,1020,10...",
	} {
		a, err := ParseArray(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		}
		if got := FormatArray(a.Tasks, a.Throttle, ArrayText); got != want {
			t.Errorf("%q shows as %s, want %s", in, got, want)
		}
	}
	all := taskset.Of(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 22)
	if got := FormatArray(all, 0, 0); got != "1,3,5,7,9,11,13,15,17,19,22" {
		t.Errorf("without a limit: %s", got)
	}
	if got := FormatArray(all, 0, 20); got != "1,3,5,7,9,11,13,..." {
		t.Errorf("in 20 bytes: %s", got)
	}
	for _, in := range []string{
		"", "5-1", "1-", "-1", "a", "1,,2", "1-5:0", "1-5%", "%2", "1-3%2,5", "1:2", "1%x",
		"1-4000001", "1%99999999",
	} {
		_, err := ParseArray(in)
		wantError(t, in, err)
	}
}

func TestNodeCount(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]NodeCount{
		"2": {2, 2}, "2-4": {2, 4}, "1k": {1024, 1024}, "1K-2k": {1024, 2048}, "1m": {1 << 20, 1 << 20}, "-4": {1, 4},
		"10-10": {10, 10}, "0": {0, 0},
	} {
		if got, err := ParseNodeCount(in); err != nil || got != want {
			t.Errorf("%q = %v, %v, want %v", in, got, err, want)
		}
	}
	for in, msg := range map[string]string{
		"abc":   `"abc" is not a valid node count`,
		"":      `"" is not a valid node count`,
		"2,4":   `"2,4" is not a valid node count`,
		"1-k":   `"k" is not a valid node count`,
		"3x":    `"3x" is not a valid node count`,
		"2-":    `"" is not a valid node count`,
		"1kk":   `"1kk" is not a valid node count`,
		"9999m": `"9999m" is not a valid node count`,
		"4-2":   "Maximum node count 2 is less than minimum node count 4",
	} {
		_, err := ParseNodeCount(in)
		wantError(t, in, err)
		var e *Error
		if errors.As(err, &e) && e.Msg != msg {
			t.Errorf("%q: %s, want %s", in, e.Msg, msg)
		}
	}
}

func TestGRES(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"gpu":                  "gpu:1",
		"gpu:2":                "gpu:2",
		"gpu:a100":             "gpu:a100:1",
		"gpu:a100:2":           "gpu:a100:2",
		"gpu:a100=2":           "gpu:a100:2",
		"gpu:a100:1,gpu:h100":  "gpu:a100:1,gpu:h100:1",
		"gpu:2,shard:4,fpga":   "gpu:2,shard:4,fpga:1",
		"gres:gpu:2":           "gpu:2",
		"gres/gpu:a100:2":      "gpu:a100:2",
		"bandwidth:lustre:4G":  "bandwidth:lustre:4294967296",
		"gpu:0":                "gpu:0",
		"none":                 "",
		"NONE":                 "",
		"gpu:nvidia_a100.80-x": "gpu:nvidia_a100.80-x:1",
	} {
		got, err := ParseGRES(in)
		if err != nil || FormatGRES(got) != want {
			t.Errorf("%q = %q, %v, want %q", in, FormatGRES(got), err, want)
		}
	}
	for _, in := range []string{
		"", "gpu:", ":2", "gpu:a100:", "gpu:x:y:1", "gpu:2x", "gpu:-1", "gpu,,fpga",
		"gpu:2,gpu:a100:1", "1gpu", "gpu:9999999999999P",
	} {
		_, err := ParseGRES(in)
		wantError(t, in, err)
	}
	for in, want := range map[string]string{
		"2": "gpu:2", "a100:2": "gpu:a100:2", "a100": "gpu:a100:1",
		"a100:1,h100:2": "gpu:a100:1,gpu:h100:2",
	} {
		got, err := ParseGPUs(in)
		if err != nil || FormatGRES(got) != want {
			t.Errorf("--gpus=%s is %q, %v, want %q", in, FormatGRES(got), err, want)
		}
	}
	for _, in := range []string{"", "a100:", ":1", "1,a100:1", "x:y:1"} {
		_, err := ParseGPUs(in)
		wantError(t, in, err)
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]SignalSpec{
		"USR1":       {Signal: 10, Seconds: 60},
		"SIGUSR1":    {Signal: 10, Seconds: 60},
		"usr1":       {Signal: 10, Seconds: 60},
		"10@5":       {Signal: 10, Seconds: 5},
		"B:USR1@300": {Signal: 10, Seconds: 300, Batch: true},
		"R:TERM":     {Signal: 15, Seconds: 60, Reservation: true},
		"RB:USR1@0":  {Signal: 10, Seconds: 0, Batch: true, Reservation: true},
		"b:usr1":     {Signal: 10, Seconds: 60, Batch: true},
		"64@65535":   {Signal: 64, Seconds: 65535},
		"sigiot":     {Signal: 6, Seconds: 60},
	} {
		got, err := ParseSignalSpec(in)
		if err != nil || got != want {
			t.Errorf("%q = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", "R:B:INT@5", "USR1@70000", "foo@3", "0", "65", "@5", "B:9@", ":USR1", "X:USR1",
		"USR1@5s", "SIG",
	} {
		_, err := ParseSignalSpec(in)
		wantError(t, in, err)
	}
	for n := 1; n <= maxSignal; n++ {
		if got, err := ParseSignal(SignalName(n)); err != nil || got != n {
			t.Errorf("signal %d is %s, which reads as %d, %v", n, SignalName(n), got, err)
		}
	}
	if SignalName(9) != "KILL" || SignalName(40) != "40" {
		t.Error("wrong signal names")
	}
}

func FuzzSlurm(f *testing.F) {
	for _, s := range []string{
		"1-02:03:04", "UNLIMITED", "1536M", "4gb", "0-15:3%4", "gpu:a100:2,fpga", "RB:USR1@10",
		"2-4", "1k",
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
		if v, err := ParseTimeLimit(s); check(err) {
			if w, err := ParseTimeLimit(FormatLimit(v)); err != nil || w != v {
				t.Fatalf("limit %q: %d, then %d, %v", s, v, w, err)
			}
			if w, err := ParseTimeLimit(FormatClockLimit(v)); err != nil || w != v {
				t.Fatalf("limit %q: %d, then %d, %v", s, v, w, err)
			}
		}
		if v, err := ParseMemory(s); check(err) {
			if text := FormatMemory(v); !strings.Contains(text, ".") {
				if w, err := ParseMemory(text); err != nil || w != v {
					t.Fatalf("memory %q: %d, then %d, %v", s, v, w, err)
				}
			}
		}
		if v, err := ParseArray(s); check(err) {
			w, err := ParseArray(v.String())
			if err != nil || !w.Tasks.Equal(v.Tasks) || w.Throttle != v.Throttle {
				t.Fatalf("array %q: %s, then %s, %v", s, v, w, err)
			}
			w, err = ParseArray(FormatArray(v.Tasks, v.Throttle, 0))
			if err != nil || !w.Tasks.Equal(v.Tasks) || w.Throttle != v.Throttle {
				t.Fatalf("array %q: %s, then %s, %v", s, v, w, err)
			}
			if text := FormatArray(v.Tasks, 0, ArrayText); len(text) >= ArrayText {
				t.Fatalf("array %q takes %d bytes", s, len(text))
			}
		}
		if v, err := ParseGRES(s); check(err) && len(v) > 0 {
			if w, err := ParseGRES(FormatGRES(v)); err != nil || FormatGRES(w) != FormatGRES(v) {
				t.Fatalf("gres %q: %v, then %v, %v", s, v, w, err)
			}
		}
		_, err := ParseGPUs(s)
		check(err)
		if v, err := ParseSignalSpec(s); check(err) {
			if w, err := ParseSignalSpec(v.String()); err != nil || w != v {
				t.Fatalf("signal %q: %v, then %v, %v", s, v, w, err)
			}
		}
		if v, err := ParseNodeCount(s); check(err) {
			if w, err := ParseNodeCount(v.String()); err != nil || w != v {
				t.Fatalf("nodes %q: %v, then %v, %v", s, v, w, err)
			}
		}
	})
}
