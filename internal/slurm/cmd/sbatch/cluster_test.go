package sbatch

import (
	"testing"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func TestClusters(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args      []string
		out, err  string
		code      int
		submitted int
	}{
		{[]string{"-M", "anchor"}, "Submitted batch job 1 on cluster anchor\n", "", 0, 1},
		{[]string{"--clusters=all", "--parsable"}, "1;anchor\n", "", 0, 1},
		{[]string{"--parsable"}, "1\n", "", 0, 1},
		{[]string{"-Q"}, "", "", 0, 1},
		{[]string{"-M", "elsewhere"}, "", "sbatch: error: No cluster 'elsewhere' known by database.\n", 1, 0},
	} {
		c := (&slurmtest.Cluster{Info: client.Cluster{Name: "anchor"}}).Start(t)
		got := c.Run(t, "sbatch", Run, append(tc.args, "--wrap=true"))
		if got.Out != tc.out || got.Err != tc.err || got.Code != tc.code || len(c.Submits) != tc.submitted {
			t.Errorf("%q: got %+v and %d jobs", tc.args, got, len(c.Submits))
		}
	}
}

// --version names the Slurm that is imitated: as the environment says, as the cluster says, or the usual one.
func TestVersion(t *testing.T) {
	t.Parallel()
	c := (&slurmtest.Cluster{Info: client.Cluster{SlurmVersion: "24.05.4"}}).Start(t)
	var nobody *slurmtest.Cluster
	for want, got := range map[string]slurmtest.Result{
		"slurm 24.05.4\n": c.Run(t, "sbatch", Run, []string{"--version"}),
		"slurm-wlm 23.11.1\n": c.Run(t, "sbatch", Run, []string{"-V"}, func(w *cmd.World) {
			w.Environ = append(w.Environ, "BIREME_SLURM_VERSION=slurm-wlm 23.11.1")
		}),
		"slurm " + cmd.Version + "\n": nobody.Run(t, "sbatch", Run, []string{"-V"}),
	} {
		if got.Out != want || got.Code != 0 {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
}
