package slurm_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

// readAll reads a command line of a tool with variables, to its end.
func readAll(tool slurm.Tool, env, args []string) (*slurm.Request, string) {
	r := slurm.NewRequest(tool, slurmtest.Day("10:00:00").Go(), "/home/u")
	r.ReadFile = func(path string) ([]byte, error) {
		if strings.HasSuffix(path, "/hosts") {
			return []byte("n2\nn1\nn2\n"), nil
		}
		return nil, os.ErrNotExist
	}
	err := r.Environ(func(name string) (string, bool) {
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v, true
			}
		}
		return "", false
	})
	if err == nil {
		if job, ok := strings.CutPrefix(strings.Join(env, " "), "SLURM_JOB_ID="); ok {
			r.Step.Job = strings.Fields(job)[0]
		}
		_, err = r.Args(args)
	}
	if err == nil {
		_, err = r.Finish()
	}
	if err != nil {
		return r, err.Error()
	}
	return r, ""
}

// TestRunning holds small facts of how Slurm reads options, each by its key.
func TestRunning(t *testing.T) {
	t.Parallel()
	distribution := func(r *slurm.Request) string { return r.Spec.More().Distribution }
	for _, c := range []struct {
		key  string
		tool slurm.Tool
		env  string
		args string
		get  func(*slurm.Request) string
		want string // a part of the error, where there is no get
	}{
		{"distribution", slurm.Srun, "", "-m *", distribution, "block"},
		{"distribution", slurm.Srun, "", "-m *:*:*", distribution, "block:cyclic:cyclic"},
		{"distribution", slurm.Srun, "", "-m *:block:*", distribution, "block:block:block"},
		{"distribution", slurm.Srun, "", "-m *,nopack", distribution, "block,nopack"},
		{"distribution", slurm.Srun, "", "-m pack", distribution, "pack"},
		{"distribution", slurm.Srun, "", "-m ,nopack", nil, "Invalid --distribution specification"},
		{"hostfile", slurm.Srun, "SLURM_HOSTFILE=hosts", "", func(r *slurm.Request) string {
			return distribution(r) + " " + r.Spec.More().NodeList
		}, "arbitrary n2,n1,n2"},
		{"hostfile", slurm.Srun, "SLURM_HOSTFILE=hosts", "-n2", func(r *slurm.Request) string {
			return r.Spec.More().NodeList
		}, "n2,n1"},
		{
			"mail-type-adds", slurm.Sbatch, "", "--mail-type=BEGIN --mail-type=END,FAIL --mail-type=NONE",
			func(r *slurm.Request) string { return r.Spec.More().MailTypes }, "BEGIN,END,FAIL",
		},
		{"output-none", slurm.Sbatch, "", "-o none -e none", func(r *slurm.Request) string {
			return r.Spec.IO.Stdout + " " + r.Spec.IO.Stderr
		}, "/dev/null /dev/null"},
		{"output-none", slurm.Srun, "", "-o none", func(r *slurm.Request) string { return r.Spec.IO.Stdout }, "none"},
		{"begin-forms", slurm.Sbatch, "", "--begin=noon-tomorrow", func(r *slurm.Request) string {
			return r.Spec.Begin.Go().Sub(slurmtest.Day("10:00:00").Go()).String()
		}, "26h0m0s"},
		{
			"deadline", slurm.Sbatch, "", "--begin=now+2hours --deadline=now+1hour", nil,
			"sbatch: error: Incompatible begin and deadline time specification",
		},
		{"rlimits", slurm.Srun, "", "--propagate=CORE,foo", nil, "srun: error: Bad rlimit name: foo"},
		{
			"gpu-bind", slurm.Srun, "", "-G1 --gpu-bind=map_gpu:0,a", nil, "srun: error: Failed to validate a, offending " +
				"character is a\nsrun: error: Invalid --gpu-bind argument: gpu:map_gpu:0,a",
		},
		{"gpu-bind", slurm.Sbatch, "", "-G1 --gpu-bind=foo", nil, "sbatch: error: Invalid --gpu-bind argument: gpu:foo"},
		{"acctg-freq", slurm.Srun, "", "--acctg-freq=foo", nil, "srun: error: Invalid --acctg-freq specification: foo"},
		{
			"big-nodes", slurm.Sbatch, "", "-N1000000k", nil,
			"sbatch: error: Batch job submission failed: More processors requested than permitted",
		},
		{"preserve-env", slurm.Srun, "", "-E", func(r *slurm.Request) string {
			return map[bool]string{true: "kept"}[r.Step.PreserveEnv]
		}, "kept"},
		{
			"step-exclusive-cpus", slurm.Srun, "SLURM_JOB_ID=7 SLURM_GPUS=4", "-c8 --gpus-per-task=1",
			func(r *slurm.Request) string {
				n, _ := r.Step.Tasks(&r.Spec.Shape)
				return map[int32]string{0: "one", 1: "one"}[n]
			}, "one",
		},
		{"overcommit", slurm.Srun, "SLURM_OVERCOMMIT=1", "-n10 -N1", func(r *slurm.Request) string {
			n, _ := r.Step.Tasks(&r.Spec.Shape)
			return map[int32]string{10: "all"}[n] + map[int32]string{1: " on one CPU"}[r.Spec.Shape.Tasks]
		}, "all on one CPU"},
		{"overcommit", slurm.Srun, "", "-O -n4 --gpus-per-task=1", func(r *slurm.Request) string {
			return map[int64]string{4: "four"}[r.Spec.Shape.Wide().GPUs[0].Count]
		}, "four"},
		{"verbose", slurm.Sbatch, "", "-vv --mem=1G -t90 -p nope -o none --hold --exclusive --nice --requeue " +
			"--mail-type=END --gres=gpu:1 --signal=B:USR1@10 --open-mode=append -n2", func(r *slurm.Request) string {
			return strings.Join(r.Defined.Lines(r), "\n")
		}, `defined options
-------------------- --------------------
exclusive           : exclusive
gres                : gres:gpu:1
hold                : set
mail-type           : END
mem                 : 1G
nice                : 100
ntasks              : 2
open-mode           : a
output              : /dev/null
partition           : nope
requeue             : requeue
signal              : B:USR1@10
time                : 01:30:00
verbose             : 2
-------------------- --------------------
end of defined options`},
	} {
		r, err := readAll(c.tool, strings.Fields(c.env), strings.Fields(c.args))
		switch {
		case c.get == nil && !strings.Contains(err, c.want):
			t.Errorf("[%s] %s %s: error %q, want %q", c.key, c.tool, c.args, err, c.want)
		case c.get != nil && err != "":
			t.Errorf("[%s] %s %s: %s", c.key, c.tool, c.args, err)
		case c.get != nil:
			if d := cmp.Diff(c.want, c.get(r)); d != "" {
				t.Errorf("[%s] %s %s (-want +got)\n%s", c.key, c.tool, c.args, d)
			}
		}
	}
}

// TestGPUChecks [gpu-checks, mps-checks]: requests for GPUs that contradict each other, in Slurm's words.
func TestGPUChecks(t *testing.T) {
	t.Parallel()
	const failed = "Failed to validate job spec"
	const order = "Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket"
	for args, want := range map[string]string{
		"--gpus-per-task=1 --cpus-per-gpu=2 -c2 -n1": "--cpus-per-gpu is mutually exclusive with --cpus-per-task",

		"--gpus-per-socket=1":        "--gpus-per-socket option requires --sockets-per-node specification",
		"--gpus=1 --gpus-per-node=2": order, "--gpus=1 --gpus-per-task=2": order,
		"--gpus-per-node=2 --gpus-per-socket=4 --sockets-per-node=1": "Failed to ensure --gpus >= --gpus-per-task",

		"--gpus=3 --gpus-per-node=2": failed + ", --gpus is not multiple of --gres=gpu/--gpus-per-node",
		"--gpus=4 --gres=gpu:2 -N1": failed + ". Based on --gpu and --gres=gpu/--gpus-per-node required nodes (2) " +
			"doesn't fall between min_nodes (1) and max_nodes (1) boundaries.",
		"--gpus-per-node=3 --gpus-per-socket=2 --sockets-per-node=1": failed +
			", --gres=gpu/--gpus-per-node not multiple of --gpus-per-socket.",
		"--gres=gpu:2 --gpus-per-socket=1 --sockets-per-node=1": failed + ". Based on --gres=gpu/--gpus-per-node and " +
			"--gpus-per-socket required number of sockets differ from --sockets-per-node.",
		"--gpus=3 --gpus-per-task=2": failed + ", --gpus not multiple of --gpus-per-task",
		"--gpus=4 --gpus-per-task=2 -n3": failed +
			". Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.",
		"--gpus=2 --gpus-per-task=1 -N2 --ntasks-per-node=2": failed +
			". Based on --gpus and --gpus-per-task number of requested tasks differ from -n/--ntasks.",
		"--gpus-per-node=3 --gpus-per-task=2 -n2": failed + ", --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.",
		"--gpus-per-task=1 --gpus-per-node=2 --ntasks-per-node=1 -N1": failed + ". Based on --gres=gpu/--gpus-per-node " +
			"and --gpus-per-task requested number of tasks per node differ from --ntasks-per-node.",
		"--gpus=1 -N2": failed + ", --gpus < -N",
		"--gpus-per-task=1": failed +
			". --gpus-per-task used without either --gpus or -n/--ntasks is not allowed.",
		"--gpus-per-node=2 --gpus-per-task=1": failed +
			". --gpus-per-task used without either --gpus or -n/--ntasks is not allowed.",
		"--ntasks-per-gpu=2 -n3": failed + ", -n/--ntasks has to be a multiple of --ntasks-per-gpu.",
		"--mem-per-gpu=10":       "Requested mem_per_tres=gres:gpu:10 but did not request any GPU.",
		"--gres=mps:1,gpu:1":     "", "--gres=mps:1 --gpu-freq=high": "", "--gpus=1 --gres=mps:10": "",
	} {
		if want != "" {
			want = "sbatch: error: " + want + "\n"
		}
		want += "sbatch: error: Invalid generic resource (gres) specification"
		if _, err := readAll(slurm.Sbatch, nil, strings.Fields(args)); err != want {
			t.Errorf("%s: %s\nwant %s", args, err, want)
		}
	}
	for _, args := range []string{
		"--gpus-per-node=2 --gpus-per-task=1 -N2", "--gpus-per-node=2 --gpus-per-task=1 -n3", "--gpus=4 --gpus-per-node=2",
		"--gpus=4 --gpus-per-node=2 -N1-3", "--gpus=4 --gpus-per-task=2", "--gpus-per-task=1 -N2", "--gpus-per-task=1 -n2",
		"--gpus=2 --gpus-per-task=1 --ntasks-per-node=2", "--gres=gpu:2 --gpus-per-node=3", "--cpus-per-gpu=2", "--gpus=0",
		"--gpus=8 --gpus-per-node=4 --gpus-per-task=2 --nodes=2 --ntasks=4 --cpus-per-gpu=1 --mem-per-gpu=10",
		"--gpus-per-node=2 --gpus-per-socket=1 --sockets-per-node=2", "--ntasks-per-gpu=2 -n4",
	} {
		if _, err := readAll(slurm.Sbatch, nil, strings.Fields(args)); err != "" {
			t.Errorf("%s: %s", args, err)
		}
	}
}

// TestForeignDirectives [pbs-bsub]: lines of other systems in a script, and the options they stand for.
func TestForeignDirectives(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"#SBATCH -J s\n#PBS -N p\n#SBATCH -J t":                             "p 1 nodes 1 tasks",
		"#PBS -l walltime=0:10:00,nodes=2:ppn=3,mem=200mb\n#PBS -q main -h": " 2 nodes 6 tasks 600 s 200 MiB main held",
		"#PBS -l nodes=3+ppn=2\n#PBS -t 1-3 -m abe":                         " 3 nodes 6 tasks 1-3 BEGIN,END,FAIL",
		"#PBS -l nodes=n1+n2:ppn=2\n#PBS -o host:/x":                        " 2 nodes 4 tasks n1,n2 /x",
		"#BSUB -J b -W 15\n#BSUB -n 3 -M 2048 -x\n#BSUB -m \"n1 \"":         "b 1 nodes 3 tasks 900 s 2 MiB/CPU n1 whole",
		"#BSUB -W 1:30 -e e -Z x":                                           " 1 nodes 1 tasks 5400 s e",
		"#PBS -N p\n#SBATCH --ignore-pbs":                                   " 1 nodes 1 tasks",
		"true\n#PBS -N late":                                                " 1 nodes 1 tasks",
	} {
		r := slurm.NewRequest(slurm.Sbatch, slurmtest.Day("10:00:00").Go(), "/home/u")
		err := r.Script("s", []byte("#!/bin/sh\n"+script+"\n"))
		if err == nil {
			_, err = r.Finish()
		}
		if err != nil {
			t.Errorf("%q: %v", script, err)
			continue
		}
		s, x := &r.Spec, r.Spec.More()
		got := fmt.Sprintf("%s %d nodes %d tasks", s.Name, max(1, s.Shape.NodesMin), s.Shape.Tasks)
		for _, part := range []struct {
			is   bool
			text string
		}{
			{s.TimeLimit > 0, fmt.Sprintf("%d s", s.TimeLimit)},
			{s.Shape.MemPerNode > 0, fmt.Sprintf("%d MiB", s.Shape.MemPerNode>>20)},
			{s.Shape.MemPerCPU > 0, fmt.Sprintf("%d MiB/CPU", s.Shape.MemPerCPU>>20)},
			{!s.Partition.IsZero(), s.Partition.String()},
			{s.Array != "", s.Array},
			{x.MailTypes != "", x.MailTypes},
			{x.NodeList != "", strings.TrimSpace(x.NodeList)},
			{s.IO.Stdout != "", s.IO.Stdout},
			{s.IO.Stderr != "", s.IO.Stderr},
			{s.Hold, "held"},
			{s.Shape.Exclusive, "whole"},
		} {
			if part.is {
				got += " " + part.text
			}
		}
		if got != want {
			t.Errorf("%q: %s, want %s", script, got, want)
		}
	}
}

// TestWithoutJob [nested-submit]: a job submitted inside another does not inherit what describes that one.
func TestWithoutJob(t *testing.T) {
	t.Parallel()
	mine := []string{"A=1", "SLURM_CONF=/etc/slurm.conf", "SLURM_CPUS_PER_TASK=2", "SLURM_NTASKS=4"}
	if d := cmp.Diff(mine, slurm.WithoutJob(mine)); d != "" {
		t.Errorf("outside of jobs (-want +got)\n%s", d)
	}
	inside := append([]string{"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_MEM_PER_CPU=5"}, mine...)
	if d := cmp.Diff(mine[:2], slurm.WithoutJob(inside)); d != "" {
		t.Errorf("inside (-want +got)\n%s", d)
	}
}

// TestNodeTasks: the tasks on each node, in SLURM_TASKS_PER_NODE.
func TestNodeTasks(t *testing.T) {
	t.Parallel()
	nodes := []core.NodeAlloc{{Node: "n1", CPUs: 8, Tasks: 1}, {Node: "n2", CPUs: 8, Tasks: 1}}
	kept := &core.Extra{Kept: &core.KeptOptions{Slurm: map[string]string{"ntasks": "9"}}}
	for key, c := range map[string]struct {
		spec core.Spec
		want string
	}{
		"overcommit":      {core.Spec{Extra: kept}, "SLURM_TASKS_PER_NODE=5,4"},
		"exclusive-tasks": {core.Spec{Shape: core.Shape{Exclusive: true, CPUsPerTask: 2}}, "SLURM_TASKS_PER_NODE=4(x2)"},
		"plain":           {core.Spec{}, "SLURM_TASKS_PER_NODE=1(x2)"},
	} {
		j := &core.Job{ID: 7, Spec: &c.spec, Alloc: &core.Alloc{Nodes: nodes}}
		env := strings.Join(slurm.AllocEnv(j, slurm.ClusterInfo{}), "\n") + "\n"
		if !strings.Contains(env, c.want+"\n") {
			t.Errorf("[%s] lacks %s:\n%s", key, c.want, env)
		}
	}
}

// TestNoProgram [multi-prog]: a task without a program is told in Slurm's words.
func TestNoProgram(t *testing.T) {
	t.Parallel()
	err := core.Errorf(core.Invalid, "task %d has no program", 3).Because("no_program")
	if got := slurm.ErrorText(err); got != "No executable program specified for task 3" {
		t.Error(got)
	}
}
