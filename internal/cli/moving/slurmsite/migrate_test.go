package slurmsite

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
)

// said is what Slurm 22.05 printed, for a cluster of two nodes; times are seconds before and after at.
var said = map[string]string{
	"scontrol-node": "NodeName=n1 Arch=x86_64 CPUEfctv=4 CPUTot=4 ActiveFeatures=fast,ib Gres=gpu:a100:2(S:0) " +
		"OS=Linux 6.1 #1 SMP RealMemory=1000 State=IDLE Weight=1 Partitions=main\n" +
		"NodeName=n2 Arch=x86_64 CPUEfctv=4 CPUTot=4 Gres=(null) RealMemory=1000 State=IDLE+DRAIN Weight=1 " +
		"Reason=bad disk [x@1]\n",
	"scontrol-partition": "PartitionName=main AllowGroups=ALL Default=YES DefaultTime=01:00:00 MaxNodes=UNLIMITED " +
		"MaxTime=1-00:00:00 Nodes=n[1-2] PriorityTier=1 OverSubscribe=NO State=UP\n" +
		"PartitionName=off Default=NO MaxTime=UNLIMITED Nodes=n1 PriorityTier=1 OverSubscribe=NO State=DOWN\n",
	"sacct": "1|1|ann|main|COMPLETED|1700000000|1700000000|1700000000|1700000400|10|cpu=4,mem=400M,node=1|n1|5|\n" +
		"2|2|ann|main|COMPLETED|1700000300|1700000300|1700000420|1700000480|10|cpu=2,mem=20M,node=1,gres/gpu=1|n1|5|fast\n" +
		"3|3|bob|main|CANCELLED by 0|1700000300|1700000300|None|1700000320|10|cpu=2,node=1|None assigned|5|\n" +
		"7_[1-2]|7|bob|main|PENDING|1700000410|1700000410|Unknown|Unknown|10|cpu=4,mem=40M,node=1|None assigned|1|\n" +
		"9|9|bob|main|PENDING|1700000410|Unknown|Unknown|Unknown|10|cpu=1,node=1|None assigned|1|\n",
	"squeue": "7|7_1|1700001000|Resources|3\n7|7_2|N/A|Priority|2\n9|9|N/A|JobHeldUser|0\n",
}

// slurm writes programs that print what is in said, and logs what they are called with.
func slurm(t *testing.T) (bin, log string) {
	t.Helper()
	bin = t.TempDir()
	log = filepath.Join(bin, "log")
	for name, text := range said {
		if err := os.WriteFile(filepath.Join(bin, name+".txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "#!/bin/sh\necho \"$(basename \"$0\") $*\" >> " + log + "\ncd " + bin +
		"\ncase \"$(basename \"$0\") $*\" in\n" +
		"scontrol*show\\ node*) cat scontrol-node.txt;;\nscontrol*show\\ partition*) cat scontrol-partition.txt;;\n" +
		"sacct*SubmitLine*) echo 'sbatch x.sh|/home/bob';;\nsacct*) cat sacct.txt;;\n" +
		"squeue*%A\\|%u*) printf '7|bob\\n';;\nsqueue*-t\\ PD*) cat squeue.txt;;\nscontrol\\ write*) echo '#!/bin/sh';;\n" +
		"scontrol\\ update*|squeue*) ;;\n*) echo \"no $0 $*\" >&2; exit 1;;\nesac\n"
	for _, name := range []string{"scontrol", "sacct", "squeue", "sacctmgr"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return bin, log
}

func run(t *testing.T, bin string, args ...string) (string, error) {
	t.Helper()
	var out, problem bytes.Buffer
	a := &app.App{
		Out: &out, Err: &problem, Now: func() time.Time { return time.Unix(1700000500, 0) },
		Lookup:  func(string) (string, bool) { return "", false },
		Connect: func() (*client.Client, error) { return nil, errors.New("none") },
	}
	c := MigrateCommand(a, func() (string, error) { return "", errors.New("none") })
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append([]string{"slurm", "--slurm-bin", bin}, args...))
	err := c.Execute()
	return out.String(), err
}

func TestShadowOfRunningSlurm(t *testing.T) {
	t.Parallel()
	bin, log := slurm(t)
	out, err := run(t, bin, "shadow", "--since", "300s", "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got Comparison
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string][2]int64{ // start with Slurm, start with Bireme; n2 is drained
		"1": {0, 0}, "2": {420, 400}, "7_1": {1000, 460}, "7_2": {-1700000000, 1060},
	}
	for _, j := range got.Jobs {
		w, ok := want[j.Job]
		slurm, ours := int64(j.Slurm)/1e6-1700000000, int64(j.Bireme)/1e6-1700000000
		if !ok || slurm != w[0] || ours != w[1] || j.Expected != (j.State == "PENDING") {
			t.Errorf("%+v: %d %d, want %v", j, slurm, ours, w)
		}
		delete(want, j.Job)
	}
	if len(want) > 0 || got.Started != 1 || got.BiremeBefore != 1 {
		t.Errorf("missing %v; %+v", want, got)
	}
	calls, err := os.ReadFile(log)
	if err != nil || strings.Contains(string(calls), "update") {
		t.Errorf("Slurm was changed: %s %v", calls, err)
	}
}

func TestCutoverAndBack(t *testing.T) {
	t.Parallel()
	bin, log := slurm(t)
	dir := filepath.Join(t.TempDir(), "save")
	if _, err := run(t, bin, "back", "--save", dir); err == nil {
		t.Error("back without a cutover")
	}
	if _, err := run(t, bin, "cutover", "--save", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("without -y something was written")
	}
	if _, err := run(t, bin, "cutover", "--save", dir, "-y"); err != nil {
		t.Fatal(err)
	}
	// The second time Slurm's partitions are inactive; what they were stays noted.
	inactive := strings.NewReplacer("State=UP", "State=INACTIVE", "State=DOWN", "State=INACTIVE")
	err := os.WriteFile(filepath.Join(bin, "scontrol-partition.txt"), []byte(inactive.Replace(said["scontrol-partition"])),
		0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, bin, "cutover", "--save", dir, "-y"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bob-7.sh", "bob-7.line"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := run(t, bin, "back", "--save", dir, "-y"); err != nil {
		t.Fatal(err)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var updates []string
	for line := range strings.Lines(string(calls)) {
		if strings.Contains(line, "update") {
			updates = append(updates, strings.TrimSpace(strings.TrimPrefix(line, "scontrol update ")))
		}
	}
	want := "PartitionName=main State=INACTIVE; PartitionName=off State=INACTIVE; PartitionName=main State=UP; " +
		"PartitionName=off State=DOWN"
	if got := strings.Join(updates, "; "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestOwnCommandsAreNotASlurm(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "bireme-slurm"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("bireme-slurm", filepath.Join(bin, "scontrol")); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"shadow"}, {"cutover", "--save", bin}, {"shadow", "--since", "0s"}} {
		if _, err := run(t, bin, args...); err == nil {
			t.Errorf("%v works with Bireme's own commands", args)
		}
	}
	if _, err := run(t, filepath.Join(bin, "none"), "shadow"); err == nil ||
		!strings.Contains(err.Error(), "--slurm-bin") {
		t.Errorf("%v", err)
	}
}
