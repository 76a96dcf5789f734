package cpubind

import (
	"fmt"
	"strings"
	"testing"

	"bireme.dev/bireme/internal/core"
)

func TestCPUBind(t *testing.T) {
	t.Parallel()
	// Two sockets of two cores with two threads: CPUs 0-3 and 4-7.
	hw := core.Hardware{CPUs: 8, Sockets: 2, Cores: 2, Threads: 2}
	all := []int32{0, 1, 2, 3, 4, 5, 6, 7}
	for name, tc := range map[string]struct {
		bind       string
		have       []int32
		tasks, per int
		want       string // CPUs of each task, or what is wrong
		told       string // SLURM_CPU_BIND
	}{
		"as many as sockets": {"", all, 2, 1, "[0 1 2 3] [4 5 6 7]", "quiet,mask_cpu:0x0F,0xF0"},
		"as many as cores":   {"", all, 4, 1, "[0 1] [4 5] [2 3] [6 7]", "quiet,mask_cpu:0x03,0x30,0x0C,0xC0"},
		"as many as threads": {
			"", all, 8, 1, "[0] [4] [1] [5] [2] [6] [3] [7]",
			"quiet,mask_cpu:0x01,0x10,0x02,0x20,0x04,0x40,0x08,0x80",
		},
		"neither": {
			"", all, 3, 1, "[0 1 2 3 4 5 6 7] [0 1 2 3 4 5 6 7] [0 1 2 3 4 5 6 7]",
			"quiet,mask_cpu:0xFF,0xFF,0xFF",
		},
		"wide tasks":           {"", all, 2, 4, "[0 1 2 3] [4 5 6 7]", "quiet,mask_cpu:0x0F,0xF0"},
		"none":                 {"verbose,none", all, 2, 1, "", "verbose,none"},
		"cores":                {"cores", all, 2, 1, "[0 1] [4 5]", "quiet,mask_cpu:0x03,0x30"},
		"cores of wide tasks":  {"v,cores", all, 2, 3, "[0 1 2 3] [4 5 6 7]", "verbose,mask_cpu:0x0F,0xF0"},
		"threads":              {"threads", all, 3, 1, "[0] [4] [1]", "quiet,mask_cpu:0x01,0x10,0x02"},
		"sockets":              {"sockets", all, 3, 1, "[0 1 2 3] [4 5 6 7] [0 1 2 3]", "quiet,mask_cpu:0x0F,0xF0,0x0F"},
		"more than there are":  {"cores", []int32{2, 3}, 3, 1, "[2 3] [2 3] [2 3]", "quiet,mask_cpu:0x0C,0x0C,0x0C"},
		"rank":                 {"rank", []int32{2, 3, 6}, 2, 1, "[2] [3]", "quiet,rank"},
		"map":                  {"map_cpu:6,2*2", all, 4, 1, "[6] [2] [2] [6]", "quiet,map_cpu:6,2,2,6"},
		"mask":                 {"quiet,mask_cpu:0x3,c", all, 3, 1, "[0 1] [2 3] [0 1]", "quiet,mask_cpu:0x03,0x0C,0x03"},
		"sockets by rank":      {"rank_ldom", []int32{0, 1, 4}, 2, 1, "[0 1] [4]", "quiet,mask_cpu:0x03,0x10"},
		"sockets by map":       {"map_ldom:1,0", all, 2, 1, "[4 5 6 7] [0 1 2 3]", "quiet,mask_cpu:0xF0,0x0F"},
		"sockets by mask":      {"mask_ldom:0x3", all, 1, 1, "[0 1 2 3 4 5 6 7]", "quiet,mask_cpu:0xFF"},
		"outside":              {"map_cpu:7", []int32{0, 1}, 1, 1, "! task 0 would have [7] of [0 1]", ""},
		"a socket it lacks":    {"map_ldom:1", []int32{0, 1}, 1, 1, "! task 0 would have [] of [0 1]", ""},
		"no such binding":      {"sideways", all, 1, 1, `! "sideways" is no binding`, ""},
		"a list that is wrong": {"map_cpu:x", all, 1, 1, `! "x" is not in a list of map_cpu`, ""},
	} {
		b, err := Parse(tc.bind)
		var got *Bound
		if err == nil {
			got, err = b.Tasks(&Node{Hardware: hw, Have: tc.have}, tc.tasks, tc.per)
		}
		if fault, ok := strings.CutPrefix(tc.want, "! "); ok {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%s: %v, want %s", name, err, fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text := strings.Trim(fmt.Sprint(got.CPUs), "[]"); text != strings.Trim(tc.want, "[]") {
			t.Errorf("%s: tasks have %s, want %s", name, text, tc.want)
		}
		if told := strings.TrimPrefix(got.Vars[0], "SLURM_CPU_BIND="); told != tc.told {
			t.Errorf("%s: told %s, want %s", name, told, tc.told)
		}
	}
	b, _ := Parse("verbose,cores")
	bound, err := b.Tasks(&Node{Hardware: hw, Have: all}, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bound.Note("n1", 3, 1, all), "cpu-bind=MASK - n1, task  3  1 [%d]: mask 0x30 set\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
