package gpu

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edited is the recording of a healthy H200 with words in it replaced by others, as sick ones are told to have.
func edited(t *testing.T, pairs ...string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/nvidia-h200-recorded.xml")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if !bytes.Contains(b, []byte(pairs[i])) {
			t.Fatalf("the recording has no %q", pairs[i])
		}
		b = bytes.Replace(b, []byte(pairs[i]), []byte(pairs[i+1]), 1)
	}
	return b
}

// smi is a machine whose nvidia-smi prints what it is given, or fails.
type smi struct {
	xml []byte
	err error
}

func (s *smi) vendors() []Vendor {
	return Machine{Run: func(_ context.Context, name string, args ...string) ([]byte, error) {
		if name != "nvidia-smi" || args[0] != "-q" {
			return nil, exec.ErrNotFound
		}
		return s.xml, s.err
	}}.Vendors()[:1]
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit []string
		want Health
	}{
		"recorded": {nil, Health{}},
		"memory": {
			[]string{"<dram_uncorrectable>0<", "<dram_uncorrectable>3<"},
			Health{Failure, []Fault{{Failure, "3 uncorrectable ECC errors in memory"}}},
		},
		"chip": {
			[]string{
				"<sram_uncorrectable_secded>0<", "<sram_uncorrectable_secded>1<",
				"<sram_threshold_exceeded>No<", "<sram_threshold_exceeded>Yes<",
			},
			Health{Failure, []Fault{
				{Failure, "1 uncorrectable ECC errors on the chip"},
				{Failure, "more ECC errors on the chip than its maker allows"},
			}},
		},
		"remap pending": {
			[]string{"<remapped_row_pending>No<", "<remapped_row_pending>Yes<"},
			Health{Warning, []Fault{{Warning, "a row of memory is to be remapped at the next reset"}}},
		},
		"remap failed": {
			[]string{"<remapped_row_failure>No<", "<remapped_row_failure>Yes<"},
			Health{Failure, []Fault{{Failure, "a row of memory could not be remapped"}}},
		},
		"hot": {
			[]string{
				"hw_thermal_slowdown>Not Active<", "hw_thermal_slowdown>Active<", "<gpu_temp>35 C<",
				"<gpu_temp>91 C<",
			},
			Health{Warning, []Fault{{Warning, "slowed down by heat (91 C)"}}},
		},
		"power brake": {
			[]string{"hw_power_brake_slowdown>Not Active<", "hw_power_brake_slowdown>Active<"},
			Health{Warning, []Fault{{Warning, "slowed down by its power supply"}}},
		},
		"power cap, as usual": {[]string{"sw_power_cap>Not Active<", "sw_power_cap>Active<"}, Health{}},
		"lanes": {
			[]string{"<current_link_width>16x<", "<current_link_width>8x<"},
			Health{Warning, []Fault{{Warning, "its PCIe link has 8 of 16 lanes"}}},
		},
		"reset": {
			[]string{"<gpu_recovery_action>None<", "<gpu_recovery_action>GPU Reset<"},
			Health{Failure, []Fault{{Failure, "its driver asks for: GPU Reset"}}},
		},
		"fabric": {
			[]string{"<summary>N/A<", "<summary>Unhealthy<"},
			Health{Failure, []Fault{{Failure, "its fabric is unhealthy"}}},
		},
		"warning and a failure": {
			[]string{
				"<remapped_row_pending>No<", "<remapped_row_pending>Yes<", "<unrepairable_memory>No<",
				"<unrepairable_memory>Yes<",
			},
			Health{Failure, []Fault{
				{Failure, "memory that cannot be repaired"},
				{Warning, "a row of memory is to be remapped at the next reset"},
			}},
		},
	} {
		seen, errs := Look(t.Context(), (&smi{xml: edited(t, tc.edit...)}).vendors())
		if len(seen) != 1 {
			t.Fatalf("%s: %v %v", name, seen, errs)
		}
		got := NewWatch(List{seen[0].Device}).Judge(seen, errs, nil, nil)
		if diff := cmp.Diff([]Health{tc.want}, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestHealthOverTime follows one device through what happens to it.
func TestHealthOverTime(t *testing.T) {
	t.Parallel()
	s := &smi{xml: edited(t)}
	vendors := s.vendors()
	seen, errs := Look(t.Context(), vendors)
	w := NewWatch(List{seen[0].Device})
	var log KernelLog
	judge := func(want string) {
		t.Helper()
		seen, errs = Look(t.Context(), vendors)
		h := w.Judge(seen, errs, log.Faults(), nil)[0]
		if got := strings.TrimSuffix(h.Level.String()+": "+h.String(), ": "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	judge("healthy")
	s.xml = edited(t, "<replay_counter>0<", "<replay_counter>500<")
	judge("warning: 500 new PCIe replays")
	judge("healthy")
	log.Take("6,812,90,-;NVRM: Xid (PCI:0000:00:06): 31, pid=812, name=python, Ch 00000008, MMU Fault")
	judge("healthy") // a program's fault
	log.Take("6,813,90,-;NVRM: Xid (PCI:0000:00:06): 63, pid='<unknown>', name=<unknown>, Row Remapper: New row " +
		"marked for remapping")
	judge("warning: Xid 63: a row of memory was remapped")
	log.Take("6,814,91,-;NVRM: Xid (PCI:0000:00:06): 79, pid=812, name=python, GPU has fallen off the bus.")
	log.Take("6,815,91,-;NVRM: Xid (PCI:0000:81:00): 48, pid=812, somebody else's")
	judge("failure: Xid 79: it has fallen off the bus; Xid 63: a row of memory was remapped")
	log.Take("6,816,99,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build")
	judge("healthy")
	s.err = errors.New("nvidia-smi did not answer within 15s")
	judge("warning: nvidia-smi did not answer within 15s")
	judge("warning: nvidia-smi did not answer within 15s")
	judge("failure: nvidia-smi did not answer within 15s")
	s.err = nil
	judge("healthy")
	whole := edited(t)
	from, to := bytes.Index(whole, []byte("\t<gpu id=")), bytes.Index(whole, []byte("</nvidia_smi_log>"))
	s.xml = append(whole[:from:from], whole[to:]...)
	judge("failure: its driver does not list it any more")
}

func TestLinkErrors(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/nvidia-nvlink-documented.txt")
	if err != nil {
		t.Fatal(err)
	}
	by := parseLinkErrors(string(b))
	w := NewWatch(List{{UUID: "GPU-a"}, {UUID: "GPU-b"}})
	w.Judge(
		[]Seen{{
			Device: Device{UUID: "GPU-a"},
			Reading: Reading{Counts: []Count{
				{What: "NVLink recovery errors"},
				{What: "NVLink replay errors"},
				{What: "NVLink CRC errors"},
			}},
		}}, nil, nil, nil)
	got := w.Judge([]Seen{
		{Device: Device{UUID: "GPU-a"}, Reading: Reading{Counts: by["GPU-a"]}},
		{Device: Device{UUID: "GPU-b"}, Reading: Reading{Counts: by["GPU-b"]}},
	}, nil, nil, nil)
	want := []Health{{
		Failure,
		[]Fault{{Failure, "1 new NVLink recovery errors"}, {Warning, "12 new NVLink replay errors"}},
	}, {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLinkFailureStays follows a counter that makes a failure: the device does not come back by itself.
func TestLinkFailureStays(t *testing.T) {
	t.Parallel()
	w := NewWatch(List{{UUID: "GPU-a"}})
	var log KernelLog
	judge := func(n int64, want string) {
		t.Helper()
		w.Loaded(log.Loads())
		h := w.Judge(
			[]Seen{{Device: Device{UUID: "GPU-a"}, Reading: Reading{
				Counts: []Count{{What: "NVLink recovery errors", N: n, Level: Failure}},
			}}}, nil, log.Faults(), nil)[0]
		if got := h.String(); got != want || (h.Level == Failure) != (want != "") {
			t.Errorf("at %d: %v, %q, want %q", n, h.Level, got, want)
		}
	}
	judge(7, "") // before the agent came
	judge(8, "1 new NVLink recovery errors")
	judge(8, "1 new NVLink recovery errors")
	judge(10, "3 new NVLink recovery errors")
	w.Judge(nil, []error{errors.New("nvidia-smi did not answer within 15s")}, nil, nil)
	judge(10, "3 new NVLink recovery errors")
	judge(0, "") // reset
	judge(0, "")
	judge(2, "2 new NVLink recovery errors")
	log.Take("6,816,99,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build")
	judge(2, "")
	judge(3, "1 new NVLink recovery errors")
}

func TestDCGM(t *testing.T) {
	t.Parallel()
	list := List{{Vendor: "nvidia", UUID: "GPU-a", Visible: "0"}, {Vendor: "nvidia", UUID: "GPU-b", Visible: "1"}}
	m := tools(t, nil, map[string]string{"dcgmi health -c -j": "dcgm-documented.json"})
	got, err := m.DCGM(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]Fault{"GPU-a": {{Failure, "DCGM: Memory: 3 volatile double-bit ECC errors"}}},
		got); diff != "" {
		t.Error(diff)
	}
	for name, answers := range map[string]map[string]string{
		"not installed": nil,
		"no daemon":     {"dcgmi health -c -j": "!dcgmi: Error: unable to connect to host engine"},
	} {
		got, err := tools(t, nil, answers).DCGM(t.Context(), list)
		if len(got) != 0 || (err != nil) != (answers != nil) {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}

func TestSickTenstorrent(t *testing.T) {
	t.Parallel()
	seen := look(t, tools(t, nil, map[string]string{"tt-smi -s --snapshot_no_tty": "tt-smi-sick-documented.json"}))
	if diff := cmp.Diff([]Fault{{Failure, "its board reports faults 0x4"}}, seen[0].Faults); diff != "" {
		t.Error(diff)
	}
}
