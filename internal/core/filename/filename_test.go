package filename

import "testing"

func TestExpand(t *testing.T) {
	t.Parallel()
	batch := Names{Job: 83, Step: "batch", Node: "vm.example.org", User: "root", JobName: "wrap", UniqueID: "s1A"}
	array := Names{
		Job: 75, ArrayJob: 73, ArrayTask: 12, Step: "batch", Node: "c01", NodeIndex: 2, User: "ann",
		Restarts: 3,
	}
	step := Names{Job: 9, Step: "4", Node: "c02", NodeIndex: 1, User: "ann"}
	cases := map[string]struct {
		pattern string
		names   Names
		task    int
		want    string
	}{
		"recorded":          {"out.%j.%x.%u.%N.%t", batch, 0, "out.83.wrap.root.vm.0"},
		"recorded array":    {"aenv.%A_%a.out", array, 0, "aenv.73_12.out"},
		"default":           {"slurm-%j.out", batch, 0, "slurm-83.out"},
		"no symbol":         {"/a/b.out", batch, 0, "/a/b.out"},
		"percent":           {"100%%.%%j", batch, 0, "100%.%j"},
		"outside arrays":    {"%A_%a_%b", batch, 0, "83_4294967294_4"},
		"index mod ten":     {"%b/%A_%a", array, 0, "2/73_12"},
		"job dot step":      {"%J", step, 0, "9.4"},
		"job of a batch":    {"%J", batch, 0, "83"},
		"step batch":        {"%s", batch, 0, "batch"},
		"rank node restart": {"%t-%n-%r", array, 7, "7-2-3"},
		"unique id":         {"%S.out", batch, 0, "s1A.out"},
		"padded": {
			"%5j_%3a_%2t_%4s",
			Names{Job: 42, ArrayJob: 40, ArrayTask: 7, Step: "1"},
			3,
			"00042_007_03_0001",
		},
		"padding is cut at ten": {"%99j", batch, 0, "0000000083"},
		"padding not for words": {"%9u%9x%9N%9s", batch, 0, "rootwrapvmbatch"},
		"padded job dot step":   {"%4J", step, 0, "0009.4"},
		"wide enough":           {"%1j", batch, 0, "83"},
		"backslash":             {`\%j.out`, batch, 0, "%j.out"},
		"two backslashes":       {`\\%j.out`, batch, 0, "%j.out"},
		"unknown letter":        {"%q%j", batch, 0, "%q83"},
		"unknown with width":    {"%3q", batch, 0, "%3q"},
		"lone percent at end":   {"a%", batch, 0, "a%"},
		"width at end":          {"a%12", batch, 0, "a%12"},
		"empty":                 {"", batch, 0, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Expand(tc.pattern, tc.names, tc.task); got != tc.want {
				t.Fatalf("Expand(%q) = %q, want %q", tc.pattern, got, tc.want)
			}
		})
	}
}

func TestFilenamePerTask(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]bool{
		"a.%t": true, "a.%3t": true, "a.%j": false, "a.%%t": false, `\a.%t`: false, "": false, "t": false,
	} {
		if got := PerTask(pattern); got != want {
			t.Errorf("PerTask(%q) = %v, want %v", pattern, got, want)
		}
	}
}
