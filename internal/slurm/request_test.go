package slurm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/coretest"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

func request(t *testing.T, tool slurm.Tool, args string) (*slurm.Request, error) {
	t.Helper()
	r := slurm.NewRequest(tool, slurmtest.Day("01:00:00").Go().UTC(), "/home/u")
	r.ReadFile = func(path string) ([]byte, error) {
		if path != "/home/u/hosts" {
			return nil, errors.New("no such file")
		}
		return []byte("n1\nn2 n3\n"), nil
	}
	if _, err := r.Args(strings.Fields(args)); err != nil {
		return r, err
	}
	_, err := r.Finish()
	return r, err
}

func gpu(typ string, n int64) []core.Gres { return []core.Gres{{Name: "gpu", Type: typ, Count: n}} }

func TestShapes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]core.Shape{
		"":    {Tasks: 1, CPUsPerTask: 1},
		"-n4": {Tasks: 4, CPUsPerTask: 1, Given: core.GivenTasks},
		"-N2": {NodesMin: 2, NodesMax: 2, Tasks: 2, CPUsPerTask: 1, Given: core.GivenNodes},
		"-N2-4 -c3": {
			NodesMin: 2, NodesMax: 4, Tasks: 2, CPUsPerTask: 3,
			Given: core.GivenNodes | core.GivenCPUsPerTask,
		},
		"-N2 --ntasks-per-node=3": {
			NodesMin: 2, NodesMax: 2, Tasks: 6, TasksPerNode: 3,
			CPUsPerTask: 1, Given: core.GivenNodes | core.GivenTasksPerNode,
		},
		"--mem=2G --exclusive": {
			Tasks: 1, CPUsPerTask: 1, MemPerNode: 2 * core.GiB,
			Exclusive: true, Given: core.GivenMemPerNode | core.GivenExclusive,
		},
		"--mem=0": {Tasks: 1, CPUsPerTask: 1, Given: core.GivenMemPerNode},
		"--mem-per-cpu=1500K": {
			Tasks: 1, CPUsPerTask: 1, MemPerCPU: 2 * core.MiB,
			Given: core.GivenMemPerCPU,
		},
		"--mincpus=4": {Tasks: 1, CPUsPerTask: 1, MinCPUs: 4},
		"--gres=gpu:a100:2,tmp:1G": {Tasks: 1, CPUsPerTask: 1, Gres: []core.Gres{
			{Name: "gpu", Type: "a100", Count: 2}, {Name: "tmp", Count: 1 << 30},
		}, Given: core.GivenGres},
		"-G 4 -N2": {
			NodesMin: 2, NodesMax: 2, Tasks: 2, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 4)}, Given: core.GivenNodes | core.GivenGres,
		},
		"-G a100:2,h100:1": {
			Tasks: 1, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: []core.Gres{
				{Name: "gpu", Type: "a100", Count: 2},
				{Name: "gpu", Type: "h100", Count: 1},
			}}, Given: core.GivenGres,
		},
		"--gpus-per-node=a100:3": {Tasks: 1, CPUsPerTask: 1, Gres: gpu("a100", 3), Given: core.GivenGres},
		"--gpus-per-node=1g.10gb:2": {
			Tasks: 1, CPUsPerTask: 1, Gres: gpu("1g.10gb", 2),
			Given: core.GivenGres,
		},
		"-n4 --gpus-per-task=1": {
			Tasks: 4, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUsPerTask: gpu("", 1)}, Given: core.GivenTasks | core.GivenGres,
		},
		"-G8 --gpus-per-task=2": {
			Tasks: 4, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 8), GPUsPerTask: gpu("", 2)}, Given: core.GivenTasks | core.GivenGres,
		},
		"-G a100:8 --gpus-per-node=4": {
			NodesMin: 2, NodesMax: 2, Tasks: 2, CPUsPerTask: 1,
			Gres: gpu("", 4), More: &core.ShapeMore{GPUs: gpu("a100", 8)}, Given: core.GivenGres,
		},
		"-N2 --gpus-per-node=4 --gpus-per-task=2": {
			NodesMin: 2, NodesMax: 2, Tasks: 4, TasksPerNode: 2,
			CPUsPerTask: 1, Gres: gpu("", 4), More: &core.ShapeMore{GPUsPerTask: gpu("", 2)},
			Given: core.GivenNodes | core.GivenTasks | core.GivenGres,
		},
		"-G4 --ntasks-per-gpu=2": {
			Tasks: 8, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 4), TasksPerGPU: 2}, Given: core.GivenTasks | core.GivenGres,
		},
		"-n6 --ntasks-per-gpu=2": {
			Tasks: 6, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 3), TasksPerGPU: 2}, Given: core.GivenTasks | core.GivenGres,
		},
		"-G2 --cpus-per-gpu=4": {
			Tasks: 1, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 2), CPUsPerGPU: 4}, Given: core.GivenGres,
		},
		"-G2 --mem-per-gpu=1G": {
			Tasks: 1, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUs: gpu("", 2), MemPerGPU: core.GiB}, Given: core.GivenGres,
		},
		"--sockets-per-node=2 --gpus-per-socket=1": {
			Tasks: 1, CPUsPerTask: 1,
			More: &core.ShapeMore{GPUsPerSocket: gpu("", 1), Sockets: 2}, Given: core.GivenGres,
		},
		"-B 2:4:1": {
			Tasks: 8, CPUsPerTask: 1, More: &core.ShapeMore{Sockets: 2, Cores: 4, Threads: 1},
			Given: core.GivenTasks,
		},
		"-B *:4 -n1": {
			Tasks: 1, CPUsPerTask: 1, More: &core.ShapeMore{Cores: 4},
			Given: core.GivenTasks,
		},
		"-N2 --sockets-per-node=2": {
			NodesMin: 2, NodesMax: 2, Tasks: 4, CPUsPerTask: 1,
			More: &core.ShapeMore{Sockets: 2}, Given: core.GivenNodes | core.GivenTasks,
		},
		"--hint=nomultithread -n2": {
			Tasks: 2, CPUsPerTask: 1,
			More: &core.ShapeMore{OneThread: true}, Given: core.GivenTasks,
		},
		"--hint=multithread": {Tasks: 1, CPUsPerTask: 1},
		"-n4 --ntasks-per-socket=1 --ntasks-per-core=2": {
			Tasks: 4, CPUsPerTask: 1,
			More: &core.ShapeMore{TasksPerSocket: 1, TasksPerCore: 2}, Given: core.GivenTasks,
		},
		"-S 2":                      {Tasks: 1, CPUsPerTask: 1, More: &core.ShapeMore{CoreSpec: 2}},
		"--thread-spec=3":           {Tasks: 1, CPUsPerTask: 1, More: &core.ShapeMore{ThreadSpec: 3}},
		"-s":                        {Tasks: 1, CPUsPerTask: 1, More: &core.ShapeMore{OverSubscribe: true}},
		"-m arbitrary -w n2,n1,n2":  {NodesMin: 2, NodesMax: 2, Tasks: 3, CPUsPerTask: 1, Given: core.GivenTasks},
		"--tres-per-task=cpu=2 -n3": {Tasks: 3, CPUsPerTask: 2, Given: core.GivenTasks | core.GivenCPUsPerTask},
	} {
		r, err := request(t, slurm.Sbatch, args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if d := cmp.Diff(want, r.Spec.Shape); d != "" {
			t.Errorf("%s (-want +got)\n%s", args, d)
		}
	}
}

func TestRareWishes(t *testing.T) {
	t.Parallel()
	top, yes := uint32(1<<32-2), true
	for args, want := range map[string]*core.Extra{
		"-w ./hosts -x n[7-8]": {NodeList: "n1,n2,n3", Exclude: "n[7-8]"},
		"-F hosts":             {NodeList: "n1,n2,n3"},
		"--signal=B:USR1@120":  {Signal: &core.WarnSignal{Signal: 10, Before: 120, Batch: true}},
		"-G a100:2 --gpus-per-task=a100:1": {Kept: &core.KeptOptions{
			Slurm: map[string]string{"gpus": "a100:2", "gpus-per-task": "a100:1"},
		}},
		"--mail-type=end,fail":         {MailTypes: "END,FAIL"},
		"-d afterok:1:2 --time-min=5":  {Dependency: coretest.Dependency("afterok:1:2"), TimeMin: 300},
		"--priority=TOP --wckey=w":     {Priority: &top, WCKey: "w"},
		"--deadline=2026-11-15T02:00":  {Deadline: slurmtest.Day("02:00:00"), LateAccepted: true},
		"-m cyclic:block --contiguous": {Distribution: "cyclic:block", Contiguous: true},
		"--prefer=fast --kill-on-invalid-dep=yes": {
			Prefer: coretest.Constraint("fast"), Kept: &core.KeptOptions{KillInvalid: &yes},
		},
		"--switches=2@1:00:00 --segment=4": {Switches: coretest.Switches("2@1:00:00"), Segment: 4},
		"--container=/b/../c": {
			Container: &core.Container{Bundle: "/c", Submitter: true, ImageEnv: true},
		},
		"--container-image=/i/../a.sif":  {Container: &core.Container{Image: "/a.sif", Submitter: true, ImageEnv: true}},
		"--get-user-env --tmp=1G -L a:2": {LoginEnv: true, TmpDisk: core.GiB, Licenses: coretest.Licenses("a:2")},
	} {
		r, err := request(t, slurm.Sbatch, args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if d := cmp.Diff(want, r.Spec.Extra); d != "" {
			t.Errorf("%s (-want +got)\n%s", args, d)
		}
	}
}

func TestPlainFields(t *testing.T) {
	t.Parallel()
	r, err := request(t, slurm.Sbatch, "-J n -A acct -p a,b -q high -t 1-0 -b now+60 --nice -H --no-requeue -D sub "+
		"-o o.%j -e e -i in --open-mode=append")
	if err != nil {
		t.Fatal(err)
	}
	want := core.Spec{
		Name: "n", Project: "acct", Partition: core.ParsePartitions("a,b"), QOS: "high", Runtime: core.RuntimeProcess,
		TimeLimit: 86400,
		Begin:     slurmtest.Day("01:01:00"), Nice: 100, Hold: true,
		Shape: core.Shape{Tasks: 1, CPUsPerTask: 1, Given: core.GivenTimeLimit},
		IO:    core.IO{WorkDir: "/home/u/sub", Stdout: "o.%j", Stderr: "e", Stdin: "in", Append: true},
	}
	if d := cmp.Diff(want, r.Spec); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestLevelsSettleRivals(t *testing.T) {
	t.Parallel()
	r := slurm.NewRequest(slurm.Sbatch, slurmtest.Day("01:00:00").Go(), "/")
	if err := r.Script("s", []byte("#!/bin/sh\n#SBATCH --mem-per-cpu=100 -n2\n")); err != nil {
		t.Fatal(err)
	}
	if err := r.Environ(func(name string) (string, bool) { return "200", name == "SBATCH_MEM_PER_NODE" }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(); err != nil {
		t.Fatal(err)
	}
	if s := r.Spec.Shape; s.MemPerCPU != 0 || s.MemPerNode != 200*core.MiB || s.Given != core.GivenTasks|
		core.GivenMemPerNode {
		t.Errorf("got %+v", s)
	}
}

func TestBadValues(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]slurm.Complaint{
		"--signal=NOPE": {Lines: []string{"sbatch: error: Invalid --signal specification"}, Exit: 255},
		"--kill-on-invalid-dep=maybe": {
			Lines: []string{"sbatch: error: Invalid --kill-on-invalid-dep specification"},
			Exit:  255,
		},
		"--open-mode=x": {
			Lines: []string{"sbatch: error: Invalid --open-mode specification"},
			Exit:  255,
		},
		"-m sideways": {
			Lines: []string{"sbatch: error: Invalid --distribution specification"},
			Exit:  255,
		},
		"--hint=foo": {
			Lines: []string{`sbatch: error: unrecognized --hint argument "foo", see --hint=help`}, Exit: 1,
		},
		"-c x": {
			Lines: []string{`sbatch: error: Invalid numeric value "x" for --cpus-per-task.`}, Exit: 1,
		},
		"--mem=1.5G":                {Lines: []string{"sbatch: error: Invalid --mem specification"}, Exit: 255},
		"-w ./nofile":               {Lines: []string{"sbatch: error: Unable to open file ./nofile"}, Exit: 1},
		"--uid=nobody-of-that-name": {Lines: []string{"sbatch: error: Invalid --uid specification"}, Exit: 255},
		"--time=soon":               {Lines: []string{"sbatch: error: Invalid --time specification"}, Exit: 255},
		"--time-min=soon":           {Lines: []string{"sbatch: error: Invalid --time-min specification"}, Exit: 255},
		"--mail-type=SOME": {
			Lines: []string{"sbatch: error: Invalid --mail-type specification"},
			Exit:  255,
		},
		"--begin=soon": {Lines: []string{
			"Invalid time specification (pos=0): soon",
			"sbatch: error: Invalid --begin specification",
		}, Exit: 255},
		"--priority=much": {
			Lines: []string{"sbatch: error: Invalid --priority specification"}, Exit: 255,
		},
		"--gpus=a100:some": {
			Lines: []string{"sbatch: error: Invalid --gpus specification"},
			Exit:  255,
		},
		"--gpu-bind=sideways": {
			Lines: []string{"sbatch: error: Invalid --gpu-bind argument: gpu:sideways"}, Exit: 255,
		},
		"-n 0": {
			Lines: []string{`sbatch: error: Invalid numeric value "0" for --ntasks.`}, Exit: 1,
		},
		"-c 0": {
			Lines: []string{`sbatch: error: Invalid numeric value "0" for --cpus-per-task.`}, Exit: 1,
		},
		"-N 5-2": {
			Lines: []string{"sbatch: error: Maximum node count 2 is less than minimum node count 5"}, Exit: 255,
		},
		"--container-id=x": {
			Lines: []string{"sbatch: error: --container-id is not supported"},
			Exit:  1,
		},
		"--container-image=/a?.sqsh": {
			Lines: []string{"sbatch: error: Invalid --container-image specification"}, Exit: 1,
		},
		"--container=/b --container-image=a": {
			Lines: []string{"sbatch: error: --container has its own files and mounts"}, Exit: 1,
		},
		"--container-mounts=/a:b": {
			Lines: []string{"sbatch: error: Invalid --container-mounts specification"}, Exit: 1,
		},
		"--container-mounts=/a:/b:x": {
			Lines: []string{"sbatch: error: Invalid --container-mounts specification"}, Exit: 1,
		},
		"--container-workdir=w": {
			Lines: []string{"sbatch: error: Invalid --container-workdir specification"}, Exit: 1,
		},
		"--container-workdir=/w": {
			Lines: []string{"sbatch: error: options of a container need --container-image"}, Exit: 1,
		},
		"--ntask-per-node=2": {
			Lines: []string{
				"sbatch: unrecognized option '--ntask-per-node=2'",
				`Try "sbatch --help" for more information`,
			}, Exit: 255,
		},
		"--gres=gpu:x:y": {
			Lines: []string{"sbatch: error: Invalid generic resource (gres) specification"}, Exit: 1,
		},
		"-m plane":          {Lines: []string{"sbatch: error: Invalid --distribution specification"}, Exit: 255},
		"-m block:sideways": {Lines: []string{"sbatch: error: Invalid --distribution specification"}, Exit: 255},
		"-m arbitrary": {
			Lines: []string{"sbatch: error: The arbitrary distribution needs a list of nodes: SLURM_HOSTFILE or " +
				"--nodelist"}, Exit: 1,
		},
		"-B 2:x": {
			Lines: []string{"sbatch: error: Invalid --extra-node-info specification"}, Exit: 255,
		},
		"--hint=nomultithread --threads-per-core=1": {
			Lines: []string{"sbatch: fatal: --hint and --threads-per-core are mutually exclusive"}, Exit: 1,
		},
		"--no": {Lines: []string{"sbatch: option '--no' is ambiguous; possibilities: '--no-kill' '--no-requeue' " +
			"'--nodefile' '--nodelist' '--nodes'", `Try "sbatch --help" for more information`}, Exit: 255},
	} {
		_, err := request(t, slurm.Sbatch, args)
		var got *slurm.Complaint
		if !errors.As(err, &got) {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if first := got.Lines[len(got.Lines)-1]; got.Hint == "" && (strings.Contains(first, ": error: Invalid --") ||
			strings.Contains(first, "not supported")) {
			t.Errorf("%s: nothing says what would be right", args)
		}
		got.Hint = "" // in words of our own
		if d := cmp.Diff(&want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", args, d)
		}
	}
	_, err := request(t, slurm.Sbatch, "--ntask-per-node=2")
	var c *slurm.Complaint
	if !errors.As(err, &c) || c.Hint != "did you mean --ntasks-per-node?" {
		t.Errorf("a mistyped option: %v, hint %q", err, c.Hint)
	}
}

func FuzzScript(f *testing.F) {
	f.Add([]byte("#!/bin/sh\n#SBATCH -N2 --comment='a b' # x\n#SBATCH -J \"q\\ \"\n"))
	f.Add([]byte("#!/bin/sh\n#SBATCH \"\n"))
	f.Fuzz(func(t *testing.T, script []byte) {
		r := slurm.NewRequest(slurm.Sbatch, slurmtest.Day("01:00:00").Go(), "/")
		if err := r.Script("s", script); err != nil {
			var c *slurm.Complaint
			if !errors.As(err, &c) || len(c.Lines) == 0 || c.Exit == 0 {
				t.Fatalf("a refusal without words or code: %#v", err)
			}
		}
	})
}

// TestFaultyDirectiveNamesItsLine: Slurm's text stays, and the hint says which line of the script is meant.
func TestFaultyDirectiveNamesItsLine(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"#!/bin/sh\n#SBATCH -n2\n# more\n#SBATCH --mem=1Q -c2\n#SBATCH -N1\n": "line 4 of job.sh: #SBATCH --mem=1Q " +
			"-c2; --mem takes ",
		"#!/bin/sh\n\n#SBATCH --nonsense\n":       "line 3 of job.sh: #SBATCH --nonsense",
		"#!/bin/sh\n#SBATCH -n1\n#SBATCH stray\n": "line 3 of job.sh: #SBATCH stray",
	} {
		r := slurm.NewRequest(slurm.Sbatch, time.Now(), "/")
		var c *slurm.Complaint
		if err := r.Script("job.sh", []byte(script)); !errors.As(err, &c) || !strings.HasPrefix(c.Hint, want) {
			t.Errorf("%q: %+v, want the hint %q", script, c, want)
		}
	}
}
