package slurm

import (
	"slices"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/getopt"
)

const (
	none     = getopt.NoArg
	required = getopt.RequiredArg
	optional = getopt.OptionalArg
)

// options gives the one table of sbatch, salloc and srun: names, values, variables, help and meaning. What is kept
// changes nothing yet but is shown; what is refused would change the meaning of the job if it were left out. It is made
// at the first use, so that the other commands start without it.
var options = sync.OnceValue(func() []Option {
	return []Option{
		{
			Long: "account", Short: 'A', Arg: required, Tools: allTools, Env: "ACCOUNT", Value: "NAME",
			Help: "the project (account) that pays", set: project,
		},
		{
			Long: "acctg-freq", Arg: required, Tools: allTools, Env: "ACCTG_FREQ", Value: "LIST",
			Help: "kept; usage is always sampled", set: acctgFreq,
		},
		{
			Long: "array", Short: 'a', Arg: required, Tools: Sbatch, Env: "ARRAY_INX", Value: "INDEXES",
			Help: "make an array of such tasks: 0-15, 1,3,5, 0-99:4; %N at the end: at most N run at once", set: array,
		},
		{Long: "batch", Arg: required, Tools: Sbatch, Env: "BATCH", Value: "FEATURES", Help: "features of the node " +
			"that the script runs on", set: refuse(
			"batch", "the script runs on the first of the nodes; --constraint says what all of them have")},
		{
			Long: "bb", Arg: required, Tools: allTools, Env: "BURST_BUFFER", Value: "TEXT",
			Help: "kept; there are no burst buffers", set: keep("bb"),
		},
		{
			Long: "bbf", Arg: required, Tools: allTools, Value: "FILE",
			Help: "put the text of a file after the first line of the script", set: func(r *Request, v string) error {
				r.Ask.ScriptFile = v
				return nil
			},
		},
		{Long: "bcast", Arg: optional, Tools: Srun, Env: "BCAST", Value: "PATH", Help: "copy the program to all " +
			"nodes first", set: func(r *Request, v string) error { r.Step.Bcast = &v; return nil }},
		{Long: "bcast-exclude", Arg: required, Tools: Srun, Value: "PATHS", Help: "directories whose libraries stay " +
			"where they are", set: refuse("bcast-exclude", "sbcast copies a file to all nodes of a job")},
		{
			Long: "begin", Short: 'b', Arg: required, Tools: allTools, Value: "TIME",
			Help: "do not start before: 16:00, 2026-12-24, now+2hours", set: begin,
		},
		{Long: "chdir", Short: 'D', Arg: required, Tools: allTools, Value: "DIR", Vars: []string{
			"SLURM_REMOTE_CWD",
			"SLURM_WORKING_DIR",
		}, Help: "where the job runs; usually where the command was given", set: chdir},
		{
			Long: "cluster-constraint", Arg: required, Tools: allTools, Env: "CLUSTER_CONSTRAINT", Value: "LIST",
			Help: "clusters that would do, by feature", set: refuse("cluster-constraint",
				"there is one cluster; features of nodes are asked for with --constraint"),
		},
		{
			Long: "clusters", Short: 'M', Arg: required, Tools: allTools, Env: "CLUSTERS", Shared: true, Value: "NAMES",
			Help: "the clusters that would do, or all", set: clusters,
		},
		{Long: "compress", Arg: optional, Tools: Srun, Env: "COMPRESS", Value: "LIBRARY", Help: "compress what " +
			"--bcast copies", set: refuse("compress", "sbcast copies a file to all nodes of a job")},
		{
			Long: "consolidate-segments", Arg: none, Tools: allTools, Help: "lay segments together",
			set: refuse("consolidate-segments", "--segment=N alone keeps groups of N nodes together"),
		},
		{
			Long: "comment", Arg: required, Tools: allTools, Value: "TEXT", Help: "a note that stays with the job",
			set: comment,
		},
		{
			Long: "constraint", Short: 'C', Arg: required, Tools: allTools, Env: "CONSTRAINT", Value: "FEATURES",
			Help: "only nodes with these: a&b, a|b, [a*2&b*4]", set: constraint,
		},
		{
			Long: "container", Arg: required, Tools: allTools, Env: "CONTAINER", Vars: []string{"SRUN_CONTAINER"},
			Value: "BUNDLE", Help: "OCI bundle to run in", set: containerBundle,
		},
		{
			Long: "container-id", Arg: required, Tools: allTools, Env: "CONTAINER_ID", Vars: []string{"SRUN_CONTAINER_ID"},
			Value: "ID", Help: "name of the container", set: refuse("container-id", "a container is named after its job"),
		},
		{
			Long: "container-image", Arg: required, Tools: allTools, Value: "IMAGE", Help: "image to run in",
			set: containerImage,
		},
		{
			Long: "container-mount-home", Arg: none, Tools: allTools, Help: "show the home inside the container",
			set: containerHome,
		},
		{
			Long: "container-mounts", Arg: required, Tools: allTools, Value: "SRC:DST[:ro],...",
			Help: "paths of the node to show inside", set: containerMounts,
		},
		{
			Long: "container-workdir", Arg: required, Tools: allTools, Value: "DIR",
			Help: "where the script starts inside; usually where the image says", set: containerWorkDir,
		},
		{Long: "contiguous", Arg: none, Tools: allTools, Help: "only nodes that follow each other", set: contiguous},
		{
			Long: "core-spec", Short: 'S', Arg: required, Tools: allTools, Env: "CORE_SPEC", Value: "N",
			Help: "leave N cores of each node alone; takes whole nodes",
			set:  counted("core-spec", 0, func(m *core.ShapeMore) *int32 { return &m.CoreSpec }),
		},
		{
			Long: "cores-per-socket", Arg: required, Tools: allTools, Value: "N",
			Help: "only nodes with N cores on a socket",
			set:  counted("cores-per-socket", 1, func(m *core.ShapeMore) *int32 { return &m.Cores }),
		},
		{
			Long: "cpu-bind", Arg: required, Tools: Srun, Env: "CPU_BIND", Value: "HOW",
			Help: "which CPUs each task may use", set: cpuBind,
		},
		{
			Long: "cpu-freq", Arg: required, Tools: allTools, Env: "CPU_FREQ_REQ", Value: "RANGE",
			Help: "kept; frequencies are not changed", set: keep("cpu-freq"),
		},
		{
			Long: "cpus-per-gpu", Arg: required, Tools: allTools, Env: "CPUS_PER_GPU", Value: "N",
			Help: "CPUs for each GPU", set: counted("cpus-per-gpu", 1, func(m *core.ShapeMore) *int32 { return &m.CPUsPerGPU }),
		},
		{Long: "cpus-per-task", Short: 'c', Arg: required, Tools: allTools, Vars: []string{
			"SRUN_CPUS_PER_TASK", "SLURM_CPUS_PER_TASK",
		}, Value: "N", Help: "CPUs for each task", set: cpusPerTask},
		{
			Long: "deadline", Arg: required, Tools: allTools, Value: "TIME",
			Help: "give up when it can no longer end by then", set: deadline,
		},
		{
			Long: "delay-boot", Arg: required, Tools: allTools, Env: "DELAY_BOOT", Value: "MINUTES",
			Help: "kept; nodes are not booted for a job", set: keep("delay-boot"),
		},
		{
			Long: "dependency", Short: 'd', Arg: required, Tools: allTools, Vars: []string{"SLURM_DEPENDENCY"},
			Value: "LIST", Help: "wait for other jobs: afterok:12, afterany:12:13, singleton", set: dependency,
		},
		{Long: "disable-status", Short: 'X', Arg: none, Tools: Srun, Env: "DISABLE_STATUS", Help: "a single Ctrl-C " +
			"ends the tasks at once", set: func(r *Request, _ string) error { r.Step.NoStatus = true; return nil }},
		{
			Long: "distribution", Short: 'm', Arg: required, Tools: allTools, Env: "DISTRIBUTION", Value: "HOW",
			Help: "how tasks lie on nodes and sockets: block, cyclic, plane=N", set: distribution,
		},
		{Long: "epilog", Arg: required, Tools: Srun, Env: "EPILOG", Value: "PROGRAM", Help: "run this after the " +
			"step, where srun runs", set: func(r *Request, v string) error { r.Step.Epilog = v; return nil }},
		{Long: "error", Short: 'e', Arg: required, Tools: Sbatch | Srun, Env: "ERROR", Vars: []string{
			"SRUN_ERROR",
			"SLURM_STDERRMODE",
		}, Value: "FILE", Help: "standard error, with patterns such as %j", set: stderrFile},
		{
			Long: "exact", Arg: none, Tools: Srun, Env: "EXACT", Help: "take only what the tasks need of the job",
			set: func(r *Request, _ string) error { r.Step.Exact = true; return nil },
		},
		{
			Long: "exclude", Short: 'x', Arg: required, Tools: allTools, Value: "NODES", Help: "none of these nodes",
			set: exclude,
		},
		{
			Long: "exclusive", Arg: optional, Tools: allTools, Env: "EXCLUSIVE", Value: "user",
			Help: "whole nodes; with user: shared with the same user's jobs only", set: exclusive,
		},
		{
			Long: "export", Arg: required, Tools: Sbatch | Srun, Env: "EXPORT",
			Vars: []string{"SRUN_EXPORT_ENV", "SLURM_EXPORT_ENV"}, Value: "NAMES",
			Help: "variables to pass on: ALL, NONE, NAME, NAME=VALUE", set: export,
		},
		{
			Long: "export-file", Arg: required, Tools: Sbatch, Value: "FILE", Help: "variables to pass on, from a file",
			set: refuse("export-file", "--export=NAME=VALUE,... gives variables one by one, --export=ALL all of them"),
		},
		{Long: "extra", Arg: required, Tools: allTools, Value: "TEXT", Help: "kept with the job", set: keep("extra")},
		{
			Long: "extra-node-info", Short: 'B', Arg: required, Tools: allTools, Value: "S[:C[:T]]",
			Help: "only nodes with S sockets of C cores of T threads", set: extraNodeInfo,
		},
		{
			Long: "get-user-env", Arg: optional, Tools: Sbatch, Env: "GET_USER_ENV", Value: "SECONDS",
			Help: "begin with what a login on the node would set", set: func(r *Request, _ string) error {
				r.extra.LoginEnv = true
				return nil
			},
		},
		{
			Long: "gid", Arg: required, Tools: allTools, Value: "GROUP",
			Help: "run with another group; for administrators", set: gid,
		},
		{
			Long: "gpu-bind", Arg: required, Tools: allTools, Env: "GPU_BIND", Value: "HOW",
			Help: "which GPUs each task sees: none, single:N, per_task:N, map_gpu:LIST", set: gpuBind,
		},
		{
			Long: "gpu-freq", Arg: required, Tools: allTools, Env: "GPU_FREQ", Value: "HOW",
			Help: "kept; frequencies are not changed", set: keep("gpu-freq"),
		},
		{
			Long: "gpus", Short: 'G', Arg: required, Tools: allTools, Env: "GPUS", Value: "[TYPE:]N",
			Help: "GPUs of the whole job", set: gpus("gpus"),
		},
		{
			Long: "gpus-per-node", Arg: required, Tools: allTools, Env: "GPUS_PER_NODE", Value: "[TYPE:]N",
			Help: "GPUs on each node", set: gpus("gpus-per-node"),
		},
		{
			Long: "gpus-per-socket", Arg: required, Tools: allTools, Env: "GPUS_PER_SOCKET", Value: "[TYPE:]N",
			Help: "GPUs at each socket, with --sockets-per-node", set: gpus("gpus-per-socket"),
		},
		{
			Long: "gpus-per-task", Arg: required, Tools: allTools, Env: "GPUS_PER_TASK", Value: "[TYPE:]N",
			Help: "GPUs for each task", set: gpus("gpus-per-task"),
		},
		{
			Long: "gres", Arg: required, Tools: allTools, Env: "GRES", Vars: []string{"SLURM_STEP_GRES", "SLURM_GRES"},
			Value: "LIST", Help: "other things of each node: gpu:2, gpu:a100:1", set: gres,
		},
		{
			Long: "gres-flags", Arg: required, Tools: allTools, Env: "GRES_FLAGS", Value: "LIST", Help: "kept",
			set: keep("gres-flags"),
		},
		{
			Long: "het-group", Arg: required, Tools: Srun, Value: "LIST", Help: "in which components of a het job to run",
			set: func(r *Request, v string) error { r.Step.HetGroup = v; return nil },
		},
		{
			Long: "hint", Arg: required, Tools: allTools, Env: "HINT", Shared: true, Value: "HOW",
			Help: "nomultithread uses one thread of each core", set: hint,
		},
		{
			Long: "hold", Short: 'H', Arg: none, Tools: allTools, Help: "let it wait until it is released",
			set: func(r *Request, _ string) error { r.Spec.Hold = true; return nil },
		},
		{
			Long: "ignore-pbs", Arg: none, Tools: Sbatch, Env: "IGNORE_PBS",
			Help: "pass over #PBS and #BSUB lines", set: func(r *Request, _ string) error {
				r.Ask.IgnorePBS = true
				return nil
			},
		},
		{
			Long: "immediate", Short: 'I', Arg: optional, Tools: Salloc | Srun, Env: "IMMEDIATE", Value: "SECONDS",
			Help: "give up if it does not start in that time (1)", set: immediate,
		},
		{
			Long: "input", Short: 'i', Arg: required, Tools: Sbatch | Srun, Env: "INPUT",
			Vars: []string{"SRUN_INPUT", "SLURM_STDINMODE"}, Value: "FILE", Help: "standard input", set: stdinFile,
		},
		{
			Long: "job-name", Short: 'J', Arg: required, Tools: allTools, Env: "JOB_NAME", Value: "NAME",
			Help: "what the job is called", set: jobName,
		},
		{Long: "jobid", Arg: required, Tools: Srun, Vars: []string{}, Value: "ID", Help: "run in that job", set: jobID},
		{
			Long: "bell", Arg: none, Tools: Salloc, Env: "BELL", Help: "ring when the nodes are there",
			set: func(r *Request, _ string) error { r.Step.Bell = true; return nil },
		},
		{
			Long: "no-bell", Arg: none, Tools: Salloc, Env: "NO_BELL", Help: "do not ring",
			set: func(r *Request, _ string) error { r.Step.Bell = false; return nil },
		},
		{
			Long: "no-shell", Arg: none, Tools: Salloc, Help: "leave as soon as the nodes are there; the job stays",
			set: func(r *Request, _ string) error { r.Step.NoShell = true; return nil },
		},
		{
			Long: "kill-command", Short: 'K', Arg: optional, Tools: Salloc, Env: "KILL_CMD", Value: "SIGNAL",
			Help: "end the command when the job ends", set: killCommand,
		},
		{
			Long: "kill-on-bad-exit", Short: 'K', Arg: optional, Tools: Srun, Env: "KILL_BAD_EXIT", Value: "0|1",
			Help: "end the step when one task fails", set: killOnBadExit,
		},
		{
			Long: "kill-on-invalid-dep", Arg: required, Tools: Sbatch, Value: "yes|no",
			Help: "end the job when what it waits for cannot happen", set: killInvalid,
		},
		{
			Long: "label", Short: 'l', Arg: none, Tools: Srun, Env: "LABELIO",
			Help: "put the task's number before each line", set: func(r *Request, _ string) error {
				r.Step.Label = true
				return nil
			},
		},
		{
			Long: "licenses", Short: 'L', Arg: required, Tools: allTools, Value: "NAME[:N],...",
			Help: "licenses to hold while it runs", set: func(r *Request, v string) error {
				r.extra.Licenses, _ = core.ParseLicenses(v) // the server refuses what does not parse
				return nil
			},
		},
		{
			Long: "mail-type", Arg: required, Tools: allTools, Value: "LIST",
			Help: "when to send mail: BEGIN, END, FAIL, ALL and others", set: mailType,
		},
		{
			Long: "mail-user", Arg: required, Tools: allTools, Value: "ADDRESS", Help: "to whom; usually the submitter",
			set: func(r *Request, v string) error { r.extra.MailUser = v; return nil },
		},
		{Long: "mcs-label", Arg: required, Tools: allTools, Value: "LABEL", Help: "kept", set: keep("mcs-label")},
		{
			Long: "mem", Arg: required, Tools: allTools, Env: "MEM_PER_NODE", Value: "SIZE",
			Help: "memory on each node, in MiB or with K, M, G, T; 0: all of it", set: mem,
		},
		{
			Long: "mem-bind", Arg: required, Tools: allTools, Env: "MEM_BIND", Value: "HOW",
			Help: "local or none, which is what the kernel does", set: memBind,
		},
		{
			Long: "mem-per-cpu", Arg: required, Tools: allTools, Env: "MEM_PER_CPU", Value: "SIZE",
			Help: "memory for each CPU", set: memPerCPU,
		},
		{
			Long: "mem-per-gpu", Arg: required, Tools: allTools, Env: "MEM_PER_GPU", Value: "SIZE",
			Help: "memory for each GPU", set: memPerGPU,
		},
		{
			Long: "mem-update", Arg: required, Tools: allTools, Value: "PCT@TIME", Help: "give memory back while it runs",
			set: refuse("mem-update", "--mem is what the job keeps to its end"),
		},
		{Long: "mincpus", Arg: required, Tools: allTools, Value: "N", Help: "at least N CPUs on each node", set: minCPUs},
		{
			Long: "mpi", Arg: required, Tools: Srun, Env: "MPI_TYPE", Value: "NAME",
			Help: "how MPI programs meet: pmi2, pmix, none; list tells", set: mpi,
		},
		{
			Long: "multi-prog", Arg: none, Tools: Srun, Help: "the command is a file that says which task runs what",
			set: func(r *Request, _ string) error { r.Step.MultiProg = true; return nil },
		},
		{Long: "network", Arg: required, Tools: allTools, Env: "NETWORK", Value: "TEXT", Help: "kept", set: keep("network")},
		{Long: "nice", Arg: optional, Tools: allTools, Value: "N", Help: "stand back in the queue by N (100)", set: nice},
		{
			Long: "no-allocate", Short: 'Z', Arg: none, Tools: Srun, Help: "run without a job",
			set: refuse("no-allocate", "processes run on nodes only within a job"),
		},
		{
			Long: "no-kill", Short: 'k', Arg: optional, Tools: allTools, Env: "NO_KILL", Value: "off",
			Help: "go on when a node fails that does not run the script", set: noKill,
		},
		{Long: "no-requeue", Arg: none, Tools: Sbatch, Env: "NO_REQUEUE", Help: "never start it again", set: requeue(false)},
		{
			Long: "nodefile", Short: 'F', Arg: required, Tools: allTools, Value: "FILE",
			Help: "only the nodes named in a file, and more if needed", set: nodeFile,
		},
		{
			Long: "nodelist", Short: 'w', Arg: required, Tools: allTools, Value: "NODES",
			Help: "these nodes, and more if needed", set: nodeList,
		},
		{Long: "nodes", Short: 'N', Arg: required, Tools: allTools, Vars: []string{
			"SLURM_NNODES", "SLURM_JOB_NUM_NODES",
		}, Value: "MIN[-MAX]", Help: "how many nodes", set: nodes},
		{
			Long: "ntasks", Short: 'n', Arg: required, Tools: allTools, Vars: []string{"SLURM_NTASKS", "SLURM_NPROCS"},
			Value: "N", Help: "how many tasks", set: tasks,
		},
		{
			Long: "ntasks-per-core", Arg: required, Tools: allTools, Vars: []string{"SLURM_NTASKS_PER_CORE"}, Value: "N",
			Help: "at most N tasks on a core", set: counted("ntasks-per-core", 1, func(m *core.ShapeMore) *int32 {
				return &m.TasksPerCore
			}),
		},
		{
			Long: "ntasks-per-gpu", Arg: required, Tools: allTools, Vars: []string{"SLURM_NTASKS_PER_GPU"}, Value: "N",
			Help: "N tasks for each GPU", set: counted("ntasks-per-gpu", 1, func(m *core.ShapeMore) *int32 {
				return &m.TasksPerGPU
			}),
		},
		{
			Long: "ntasks-per-node", Arg: required, Tools: allTools, Vars: []string{"SLURM_NTASKS_PER_NODE"}, Value: "N",
			Help: "N tasks on each node", set: tasksPerNode,
		},
		{
			Long: "ntasks-per-socket", Arg: required, Tools: allTools, Vars: []string{"SLURM_NTASKS_PER_SOCKET"},
			Value: "N", Help: "at most N tasks on a socket",
			set: counted("ntasks-per-socket", 1, func(m *core.ShapeMore) *int32 { return &m.TasksPerSocket }),
		},
		{
			Long: "oom-kill-step", Arg: optional, Tools: allTools, Value: "0|1",
			Help: "kept; running out of memory ends all of a step", set: keep("oom-kill-step"),
		},
		{
			Long: "open-mode", Arg: required, Tools: Sbatch | Srun, Env: "OPEN_MODE", Value: "append|truncate",
			Help: "what to do with output files that are there", set: openMode,
		},
		{
			Long: "output", Short: 'o', Arg: required, Tools: Sbatch | Srun, Env: "OUTPUT",
			Vars: []string{"SRUN_OUTPUT", "SLURM_STDOUTMODE"}, Value: "FILE",
			Help: "standard output, with patterns such as %j, %A_%a, %t", set: stdoutFile,
		},
		{
			Long: "overcommit", Short: 'O', Arg: none, Tools: allTools, Env: "OVERCOMMIT",
			Help: "one CPU of a node does for all its tasks", set: keepFlag("overcommit"),
		},
		{
			Long: "overlap", Arg: none, Tools: Srun, Env: "OVERLAP", Help: "share what other steps of the job use",
			set: func(r *Request, _ string) error { r.Step.Overlap = true; return nil },
		},
		{
			Long: "oversubscribe", Short: 's', Arg: none, Tools: allTools,
			Help: "CPUs may be shared with jobs that say so too", set: oversubscribed,
		},
		{
			Long: "parsable", Arg: none, Tools: Sbatch, Help: "print the number alone, and ;CLUSTER with -M",
			set: func(r *Request, _ string) error { r.Ask.Parsable = true; return nil },
		},
		{
			Long: "partition", Short: 'p', Arg: required, Tools: allTools, Env: "PARTITION", Value: "NAMES",
			Help: "where to run; of several, where it starts first", set: partition,
		},
		{Long: "power", Arg: required, Tools: allTools, Value: "TEXT", Help: "kept", set: keep("power")},
		{
			Long: "prefer", Arg: required, Tools: allTools, Value: "FEATURES", Help: "nodes with these if there are any",
			set: prefer,
		},
		{Long: "preserve-env", Short: 'E', Arg: none, Tools: Srun, Help: "counts of the job hold for " +
			"the step", set: func(r *Request, _ string) error { r.Step.PreserveEnv = true; return nil }},
		{
			Long: "priority", Arg: required, Tools: allTools, Value: "N",
			Help: "stand at this place in the queue; administrators only", set: priority,
		},
		{Long: "profile", Arg: required, Tools: allTools, Env: "PROFILE", Value: "LIST", Help: "kept", set: keep("profile")},
		{Long: "prolog", Arg: required, Tools: Srun, Env: "PROLOG", Value: "PROGRAM", Help: "run this before the " +
			"step, where srun runs", set: func(r *Request, v string) error { r.Step.Prolog = v; return nil }},
		{
			Long: "propagate", Arg: optional, Tools: allTools, Value: "LIMITS",
			Help: "give the tasks these limits of yours: ALL, NONE, NOFILE, ...", set: propagate,
		},
		{Long: "pty", Arg: none, Tools: Srun, Help: "give task 0 a terminal", set: func(r *Request, _ string) error {
			r.Step.Pty = true
			return nil
		}},
		{
			Long: "qos", Short: 'q', Arg: required, Tools: allTools, Env: "QOS", Value: "NAME", Help: "quality of service",
			set: qos,
		},
		{
			Long: "quiet", Short: 'Q', Arg: none, Tools: allTools, Help: "say only what is wrong",
			set: func(r *Request, _ string) error { r.Ask.Quiet = true; return nil },
		},
		{
			Long: "quit-on-interrupt", Arg: none, Tools: Srun, Help: "one Ctrl-C ends it",
			set: func(r *Request, _ string) error { r.Step.QuitOnInterrupt = true; return nil },
		},
		{Long: "reboot", Arg: none, Tools: allTools, Help: "boot the nodes first", set: refuse(
			"reboot", "an administrator reboots nodes; --constraint asks for those that have a feature already")},
		{
			Long: "relative", Short: 'r', Arg: required, Tools: Srun, Value: "N",
			Help: "begin with the N-th node of the job", set: relative,
		},
		{
			Long: "requeue", Arg: optional, Tools: Sbatch, Env: "REQUEUE", Value: "expedite",
			Help: "start it again when a node fails or it is preempted", set: requeue(true),
		},
		{
			Long: "reservation", Arg: required, Tools: allTools, Env: "RESERVATION", Value: "NAMES",
			Help: "run in an advance reservation", set: func(r *Request, v string) error {
				r.extra.Reservation = v
				return nil
			},
		},
		{
			Long: "resv-ports", Arg: optional, Tools: Srun, Env: "RESV_PORTS", Value: "N", Help: "kept",
			set: keep("resv-ports"),
		},
		{Long: "resources", Arg: required, Tools: allTools, Value: "LIST", Help: "resources that belong to parts of " +
			"the cluster", set: refuse("resources", "--licenses asks for what belongs to no node, --gres for what does")},
		{
			Long: "runtime", Arg: required, Tools: allTools, Value: "NAME", Help: "what runs the container",
			set: refuse("runtime", "name an image with --container-image"),
		},
		{
			Long: "segment", Arg: required, Tools: allTools, Env: "SEGMENT_SIZE", Vars: []string{"SRUN_SEGMENT_SIZE"},
			Value: "N", Help: "nodes come in groups of N, each close together", set: segment,
		},
		{
			Long: "send-libs", Arg: optional, Tools: Srun, Value: "yes|no", Help: "copy libraries too with --bcast",
			set: refuse("send-libs", "sbcast copies a file to all nodes of a job"),
		},
		{
			Long: "signal", Arg: required, Tools: allTools, Env: "SIGNAL", Value: "[B:]SIG[@SEC]",
			Help: "send a signal so long before the time is over", set: signal,
		},
		{
			Long: "slurmd-debug", Arg: required, Tools: Srun, Vars: []string{"SLURMD_DEBUG"}, Value: "LEVEL",
			Help: "ignored", set: ignored,
		},
		{
			Long: "sockets-per-node", Arg: required, Tools: allTools, Value: "N", Help: "only nodes with N sockets",
			set: counted("sockets-per-node", 1, func(m *core.ShapeMore) *int32 { return &m.Sockets }),
		},
		{
			Long: "spread-job", Arg: none, Tools: allTools, Env: "SPREAD_JOB",
			Help: "use as many nodes as there are tasks", set: spreadJob,
		},
		{
			Long: "spread-segments", Arg: none, Tools: allTools, Help: "lay segments apart",
			set: refuse("spread-segments", "--segment=N alone keeps groups of N nodes together"),
		},
		{Long: "stepmgr", Arg: none, Tools: Sbatch | Salloc, Help: "ignored", set: ignored},
		{
			Long: "switches", Arg: required, Tools: allTools, Env: "REQ_SWITCH", Value: "N[@TIME]",
			Help: "under at most N leaf switches, and how long to wait for that", set: switches,
		},
		{
			Long: "task-epilog", Arg: required, Tools: Srun, Env: "TASK_EPILOG", Value: "PROGRAM",
			Help: "run this after each task, on its node", set: func(r *Request, v string) error {
				r.Step.TaskEpilog = v
				return nil
			},
		},
		{
			Long: "task-prolog", Arg: required, Tools: Srun, Env: "TASK_PROLOG", Value: "PROGRAM",
			Help: "run this before each task, on its node; what it prints may set variables", set: func(r *Request,
				v string,
			) error {
				r.Step.TaskProlog = v
				return nil
			},
		},
		{
			Long: "test-only", Arg: none, Tools: Sbatch | Srun,
			Help: "tell when and where it would start, and leave it at that", set: func(r *Request, _ string) error {
				r.Ask.TestOnly = true
				return nil
			},
		},
		{Long: "thread-spec", Arg: required, Tools: allTools, Env: "THREAD_SPEC", Value: "N", Help: "leave N threads " +
			"of each node alone; takes whole nodes", set: counted("thread-spec", 0, func(m *core.ShapeMore) *int32 {
			return &m.ThreadSpec
		})},
		{Long: "threads", Short: 'T', Arg: required, Tools: Srun, Env: "THREADS", Value: "N", Help: "ignored", set: ignored},
		{
			Long: "threads-per-core", Arg: required, Tools: allTools, Env: "THREADS_PER_CORE", Value: "N",
			Help: "use N threads of each core", set: counted("threads-per-core", 1, func(m *core.ShapeMore) *int32 {
				return &m.Threads
			}),
		},
		{
			Long: "time", Short: 't', Arg: required, Tools: allTools, Env: "TIMELIMIT", Value: "TIME",
			Help: "time limit: minutes, H:M:S, D-H:M", set: timeLimit,
		},
		{
			Long: "time-min", Arg: required, Tools: allTools, Value: "TIME",
			Help: "the limit may be cut to this if it then starts sooner", set: timeMin,
		},
		{
			Long: "tmp", Arg: required, Tools: allTools, Value: "SIZE", Help: "only nodes with that much temporary disk",
			set: tmpDisk,
		},
		{
			Long: "tres-bind", Arg: required, Tools: allTools, Env: "TRES_BIND", Value: "LIST",
			Help: "gres/gpu: and a binding as of --gpu-bind", set: tresBind,
		},
		{
			Long: "tres-per-task", Arg: required, Tools: allTools, Env: "TRES_PER_TASK", Value: "LIST",
			Help: "what each task takes: cpu=4,gres/gpu=1", set: tresPerTask,
		},
		{
			Long: "uid", Arg: required, Tools: allTools, Value: "USER",
			Help: "submit for another user; administrators only", set: uid,
		},
		{Long: "unbuffered", Short: 'u', Arg: none, Tools: Srun, Env: "UNBUFFEREDIO", Help: "pass output on as it " +
			"comes, not by lines", set: func(r *Request, _ string) error { r.Step.Unbuffered = true; return nil }},
		{
			Long: "use-min-nodes", Arg: none, Tools: allTools, Env: "USE_MIN_NODES",
			Help: "of a range of nodes take as few as will do", set: useMinNodes,
		},
		{
			Long: "verbose", Short: 'v', Arg: none, Tools: allTools, Env: "DEBUG", Help: "say more; may be repeated",
			set: verbose,
		},
		{Long: "wait", Short: 'W', Arg: none, Tools: Sbatch, Env: "WAIT", Help: "stay until the job has ended, and " +
			"end as it did", set: func(r *Request, _ string) error { r.Ask.Wait = true; return nil }},
		{
			Long: "wait", Short: 'W', Arg: required, Tools: Srun, Env: "WAIT", Value: "SECONDS",
			Help: "end the step so long after its first task ended", set: waitSeconds,
		},
		{
			Long: "wait-all-nodes", Arg: required, Tools: Sbatch | Salloc, Env: "WAIT_ALL_NODES", Value: "0|1",
			Help: "kept; a job starts when all its nodes are ready", set: keep("wait-all-nodes"),
		},
		{
			Long: "wckey", Arg: required, Tools: allTools, Env: "WCKEY", Value: "KEY", Help: "kept with the job",
			set: func(r *Request, v string) error { r.extra.WCKey = v; return nil },
		},
		{
			Long: "wrap", Arg: required, Tools: Sbatch, Value: "COMMAND", Help: "make a script of this command",
			set: func(r *Request, v string) error { r.Ask.Wrap = &v; return nil },
		},
		{
			Long: "x11", Arg: optional, Tools: Salloc | Srun, Value: "all|first|last",
			Help: "show windows of the nodes here", set: func(r *Request, v string) error {
				if r.Step.X11 = strings.ToLower(v); v == "" {
					r.Step.X11 = "all"
				} else if !slices.Contains([]string{"all", "batch", "first", "last"}, r.Step.X11) {
					return r.invalidHint("x11", "all, first or last")
				}
				return nil
			},
		},

		{
			Long: "help", Short: 'h', Arg: none, Tools: allTools, Help: "this text",
			set: func(r *Request, _ string) error { r.Ask.Help = true; return nil },
		},
		{
			Long: "usage", Arg: none, Tools: allTools, Help: "the options in short",
			set: func(r *Request, _ string) error { r.Ask.Usage = true; return nil },
		},
		{
			Long: "version", Short: 'V', Arg: none, Tools: allTools, Help: "print the version of Slurm that is imitated",
			set: func(r *Request, _ string) error { r.Ask.Version = true; return nil },
		},
	}
})
