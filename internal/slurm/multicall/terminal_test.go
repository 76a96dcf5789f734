package multicall

import (
	"strings"
	"testing"
	"unicode"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// Records of a server that took names with control characters are shown without them by every command that prints
// names, and make no rows of their own.
func TestNamesReachNoTerminal(t *testing.T) {
	t.Parallel()
	const evil = "x\x1b[2J\nFAKE\r\u009b31m\u202eexe\x7f"
	spec := &core.Spec{
		Name: evil, User: core.UserName(evil), Project: core.ProjectName(evil), Partition: core.ParsePartitions(evil),
		QOS:  core.QOSName(evil),
		IO:   core.IO{WorkDir: "/" + evil, Stdout: "/" + evil},
		From: core.Origin{Command: "/" + evil, Line: "sbatch " + evil, Host: evil},
		Extra: &core.Extra{
			Comment: evil, WCKey: evil, Constraint: coretest.Constraint(evil), Licenses: coretest.Licenses(evil),
			Reservation: evil,
			MailUser:    evil, MailTypes: "ALL",
			Kept: &core.KeptOptions{Slurm: map[string]string{"extra": evil, "network": evil}},
		},
	}
	c := (&slurmtest.Cluster{
		Jobs: []client.Job{
			{Job: core.Job{ID: 7, Spec: spec, State: core.Running, Start: 1, Alloc: &core.Alloc{
				Partition: core.PartitionName(evil), Nodes: []core.NodeAlloc{{Node: "n1", CPUs: 1}},
			}}},
			{Job: core.Job{ID: 8, Spec: spec, State: core.Pending}, Waiting: core.Reason(evil), Why: evil},
		},
		Steps: []core.Step{{
			Job: 7, ID: 0, Name: evil, State: core.Running, Nodes: []core.NodeName{"n1"},
			Tasks: []int32{1},
		}},
		Nodes: []client.Node{
			{
				Node:  core.Node{Name: "n1", Reason: evil, Roles: core.Compute, Host: core.Host{OS: evil}},
				State: "IDLE+DRAIN", Partitions: []core.PartitionName{core.PartitionName(evil)},
			},
		},
		Info: client.Cluster{Name: "c", Partitions: []core.Partition{{Name: core.PartitionName(evil), Nodes: "ALL"}}},
		Reservations: []client.Reservation{
			{AdvanceReservation: core.AdvanceReservation{
				Name: evil, Users: []core.UserName{core.UserName(evil)},
				Nodes: "n1",
			}, State: "ACTIVE"},
		},
		Licenses: []client.License{{License: core.License{Name: evil, Total: 1}}},
	}).Start(t)
	for _, line := range []string{
		"squeue", "squeue -l", "squeue -s", "squeue -o %i|%j|%u|%a|%P|%q|%R|%k|%Z|%o|%f|%W|%v",
		"squeue -O jobid,name:100,username:100,comment:100,workdir:100,command:100,partition:100,account:100,wckey:100",
		"sacct -a", "sacct -a -P -o " +
			"jobid,jobname,user,account,partition,comment,workdir,submitline,wckey,constraints,qos", "sinfo",
		"sinfo -N -l", "sinfo -R", "sinfo -T",
		"scontrol show job", "scontrol -dd show job 7", "scontrol -o show job", "scontrol show node",
		"scontrol show partition", "scontrol show reservation", "scontrol show step", "scontrol show licenses",
		"squeue --json", "sacct -a --json", "sinfo --json", "scontrol --json show jobs", "scancel 7\x1b[2J",
		"scontrol show job 9\x1b[2J",
	} {
		f := strings.Fields(line)
		run, _ := Lookup(f[0])
		got := c.Run(t, f[0], run, f[1:])
		for _, text := range []string{got.Out, got.Err, got.Hint} {
			bad := strings.IndexFunc(text, func(r rune) bool {
				return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar)
			})
			if bad >= 0 && f[0] != "scancel" {
				t.Errorf("%s: %q at %d", line, text, bad)
			}
			for row := range strings.Lines(text) {
				if strings.HasPrefix(strings.TrimSpace(row), "FAKE") {
					t.Errorf("%s: a name makes a row: %q", line, text)
				}
			}
		}
		if got.Out+got.Err == "" {
			t.Errorf("%s printed nothing", line)
		}
	}
}
