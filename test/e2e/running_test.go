//go:build e2e

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"bireme.dev/bireme/test/cluster"
)

// running are facts of how jobs run, by their key: a script for bash, and what it prints.
var running = map[string]struct{ script, want string }{
	"overcommit": {`srun -N1 -n6 -O sh -c 'echo $SLURM_NTASKS $SLURM_CPUS_ON_NODE $SLURM_TASKS_PER_NODE' | sort | uniq -c
salloc -Q -N2 -n6 -O sh -c 'echo $SLURM_TASKS_PER_NODE; srun hostname | sort | uniq -c'`, `6 6 1 6
3(x2)
3 n1
3 n2`},
	"rlimits": {`ulimit -S -n 300; ulimit -S -c 0
srun sh -c 'ulimit -Sn'
sbatch -Q -W -o rl.out --wrap 'ulimit -Sn; ulimit -S -n 200; srun sh -c "ulimit -Sn"; env | grep -c SLURM_RLIMIT'
cat rl.out`, `300
300
200
0`},
	"nested-submit": {`sbatch -Q -W -n2 -c2 -o ns1.out --wrap 'sbatch -Q -W -o ns2.out \
--wrap "echo \${SLURM_CPUS_PER_TASK:-none}; srun echo ran"'
cat ns2.out`, `none
ran`},
	"export-env": {`srun --export=FOO=1,PATH=$PATH printenv FOO SLURM_EXPORT_ENV
sbatch -Q -W --export=NONE -o ee.out --wrap "$(which srun) /usr/bin/printenv SLURM_JOB_NAME"
cat ee.out`, `1
wrap`},
	"output-folder": {`sbatch -Q -W -o of/%j/out --wrap 'echo "${0##*/}"; basename "${0%/*}" | tr -d 0-9'
cat of/*/out; srun -o of/x/y echo srun; cat of/x/y`, `slurm_script
job
srun`},
	"exclusive-tasks": {`srun -N1 -c2 --exclusive hostname | wc -l; srun -N1 --exclusive hostname | wc -l`, `2
1`},
	"het-group": {`salloc -Q -N1 : -N1 : -N1 sh -c 'srun -l --het-group=0,2 echo A : --het-group=1 echo B | sort
srun --het-group=0,3 true; srun --het-group=3 true' 2>&1
srun -l -n1 : -n2 echo all | sort`, `0: A
1: B
2: A
srun: error: Attempt to run a job step with het group value of 3, but the job allocation has maximum value of 2
srun: error: Requested het-group offset exceeds highest hetjob index (3 > 2)
0: all
1: all
2: all`},
	"het-nodes": {`salloc -N1 : -N1 : -N1 sh -c 'env | grep ^SLURM_JOB_NODELIST_HET | cut -d= -f2 | sort' 2>&1 |
sed 's/ [0-9][0-9]*/ J/'`, `salloc: Pending job allocation J
salloc: job J queued and waiting for resources
salloc: job J has been allocated resources
salloc: Granted job allocation J
n1
n2
n3
salloc: Relinquishing job allocation J`},
	"het-step": {`salloc -Q -N2 sh -c 'srun -l hostname : hostname | sort; srun -w n2 echo A : -N1 hostname | sort
srun -N1 true : -N1 true : true; srun -w n1 true : -w n1 true' 2>&1`, `0: n1
1: n2
A
n1
srun: error: Allocation failure of 1 nodes: job size of 2, already allocated 2 nodes to previous components.
srun: error: Requested nodelist n1 overlaps with excluded n1.
srun: error: Job not submitted.`},
	"path-rights": {`mkdir pl; cp /bin/false pl/id; chmod 611 pl/id # others may run it, its owner may not
[ "$(PATH=$PWD/pl:$PATH srun id -u)" = "$(id -u)" ] && echo found`, `found`},
	"het-group-alone": {`salloc -Q -N1 : -N2 sh -c 'srun --het-group=1 hostname; srun --het-group=1 -N2 hostname' | wc -l
salloc -Q -N2 : -N1 sh -c 'srun --het-group=1 -N2 hostname' 2>&1 | grep -c error`, "4\n1"},
	"srun-leak": {`srun --pty tty </dev/null 2>&1 | head -1 | wc -l
srun yes | head -1
for i in 1 2 3 4 5 6 7 8 9; do n=$(squeue -h -u $USER -t R -n tty,yes | wc -l); [ $n = 0 ] && break; sleep 0.3; done
echo $n left`, `1
y
0 left`},
	"deadline": {
		`salloc --deadline=now+2minutes -t5 true 2>&1 | sed 's/ [0-9][0-9]*/ J/'
srun --deadline=now+2minutes -t5 true 2>&1 | sed 's/ [0-9][0-9]*/ J/'
sbatch -Q -W --deadline=now+2minutes -t5 -o /dev/null --wrap true; echo $?
sbatch -Q -W --deadline=now+175 -o dl.out --wrap 'scontrol show job $SLURM_JOB_ID | grep -o TimeLimit.*'
cat dl.out; sacct -n -X -P -o state,exitcode | grep DEAD | sort -u`,
		`salloc: Pending job allocation J
salloc: job J queued and waiting for resources
salloc: Job has been cancelled
salloc: Job allocation J has been revoked.
salloc: error: Job submit/allocate failed: Job/step already completing or completed
srun: job J queued and waiting for resources
srun: Job has been cancelled
srun: error: Unable to allocate resources: Job/step already completing or completed
1
TimeLimit=00:02:00 TimeMin=00:01:00
DEADLINE|1:0`,
	},
	"gpu-notes": {
		`srun -N1 -n2 --gpus=2 --gpu-bind=verbose,single:1 --gpu-freq=high true 2>&1 | sort
salloc -Q -N1 --gpus=2 --mem-per-gpu=10 sh -c 'srun -n1 printenv SLURM_STEP_GPUS'`,
		`GpuFreq=control_disabled
gpu-bind: usable_gres=0x1; bit_alloc=0x3; local_inx=0; global_list=0; local_list=0
gpu-bind: usable_gres=0x2; bit_alloc=0x3; local_inx=0; global_list=1; local_list=1
0,1`,
	},
	"gpu-step-combo": {
		`srun --gpus=4 --gpus-per-node=2 --gpus-per-task=1 -N2 -n4 --cpus-per-gpu=1 printenv CUDA_VISIBLE_DEVICES | sort`,
		"0\n0\n1\n1",
	},
	"gres-none": {
		`sbatch -Q -W --gres=gpu:2 -o gn.out --wrap 'for o in "" --gres=none --gpus=0 --gres=gpu:1; do
srun $o sh -c "echo \$SLURM_JOB_GPUS \$SLURM_STEP_GPUS \$CUDA_VISIBLE_DEVICES \$SLURM_GPUS_ON_NODE"; done'
cat gn.out; CUDA_VISIBLE_DEVICES=5 srun printenv CUDA_VISIBLE_DEVICES 2>&1`,
		`0,1 0,1 0,1 2
0,1
0,1
0,1 0 0 1
srun: error: n1: task 0: Exited with exit code 1`,
	},
	"relative": {
		`salloc -Q -N3 sh -c 'srun -r2 -N2 true; srun -r1 -N1 -n1 hostname' 2>&1; srun -r1 true 2>&1`,
		`srun: error: --relative and --nodes option incompatible with count of allocated nodes (2+2>3)
n2
srun: fatal: --relative option invalid for job allocation request`,
	},
	"verbose": {
		`srun -v -n2 -N1 true 2>&1 | sed 's/[0-9][0-9]*\.0/J.0/; s/jobid [0-9]*/jobid J/' | grep -v -- ---`,
		"srun: defined options\nsrun: nodes               : 1\nsrun: ntasks              : 2\n" +
			"srun: verbose             : 1\nsrun: end of defined options\n" +
			"srun: jobid J: nodes(1):`n1', cpu counts: 2(x1)\n" +
			"srun: launch/slurm: launch_p_step_launch: CpuBindType=(null type)\n" +
			"srun: launching StepId=J.0 on host n1, 2 tasks: [0-1]\n" +
			"srun: launch/slurm: _task_start: Node n1, 2 tasks started\n" +
			"srun: launch/slurm: _task_finish: Received task exit notification for 2 tasks of StepId=J.0 (status=0x0000).\n" +
			"srun: launch/slurm: _task_finish: n1: tasks 0-1: Completed",
	},
}

// TestRunning holds facts of how jobs run, one script each.
func TestRunning(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Nodes: 3, CPUs: 4, Memory: "4G", Gres: "gpu:2"})
	for key, fact := range running { // one after the other: some look at all of a node
		t.Run(key, func(t *testing.T) {
			d := c.For(t)
			script := write(t, filepath.Join(c.Work, key+".sh"), fact.script)
			r := d.As(alice).Try("/bin/bash", script)
			var got []string
			for line := range strings.Lines(r.Out) {
				got = append(got, strings.Join(strings.Fields(line), " "))
			}
			var want []string
			for line := range strings.Lines(fact.want) {
				want = append(want, strings.Join(strings.Fields(line), " "))
			}
			if text := strings.Join(got, "\n"); text != strings.Join(want, "\n") {
				t.Errorf("[%s] printed\n%s\nwant\n%s\n%s", key, text, strings.Join(want, "\n"), r.Err)
			}
		})
	}
	c.WaitClean()
}
