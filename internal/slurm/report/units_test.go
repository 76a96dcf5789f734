package report

import "testing"

// TestUnits has what sacct of Slurm 22.05.8 prints with --units and --noconvert.
func TestUnits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		units              Units
		column, text, want string
	}{
		{0, "ReqMem", "10G", "10G"},
		{Raw, "ReqMem", "10M", "10M"},
		{Raw, "ReqMem", "10G", "10240M"},
		{'G', "ReqMem", "10M", "0.01G"},
		{'K', "ReqMem", "10M", "10240K"},
		{'T', "ReqMem", "10M", "0.00T"},
		{'K', "ReqMem", "0", "0"},
		{Raw, "MaxRSS", "10968K", "11231232"},
		{'M', "MaxRSS", "10968K", "10.71M"},
		{'M', "AveVMSize", "2048K", "2M"},
		{'M', "MaxRSSNode", "n001", "n001"},
		{'G', "AllocTRES", "billing=1,cpu=1,mem=10M,node=1", "billing=1,cpu=1,mem=0.01G,node=1"},
		{Raw, "ReqTRES", "billing=1,cpu=1,mem=1G,node=1", "billing=1,cpu=1,mem=1024M,node=1"},
		{'K', "TRESUsageInMax", "gres/gpumem=2M,gres/gpuutil=40", "gres/gpumem=2048K,gres/gpuutil=40"},
		{'K', "JobName", "10M", "10M"},
		{'K', "MaxRSS", "", ""},
	} {
		if got := c.units.Text(c.column, c.text); got != c.want {
			t.Errorf("%c %s %q: %q, want %q", c.units, c.column, c.text, got, c.want)
		}
	}
	for text, want := range map[string]bool{"G": true, "k": true, "P": true, "X": false, "": false, "MB": false} {
		if _, ok := ParseUnits(text); ok != want {
			t.Errorf("ParseUnits(%q) = %v", text, ok)
		}
	}
}
