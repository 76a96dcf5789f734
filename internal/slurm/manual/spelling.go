package manual

import "strings"

// headings are those of the help of sbatch, salloc and srun, in the order in which they come.
var headings = []string{
	"Parallel run options:",
	"Constraint options:",
	"Consumable resources related options:",
	"Affinity/Multi-core options: (when the task/affinity plugin is enabled)",
	"GPU scheduling options:",
}

// under are the options below each heading but the first, which has the others.
var under = map[string][]string{
	headings[1]: strings.Fields("cluster-constraint contiguous constraint mem mincpus reservation tmp nodelist " +
		"exclude no-allocate nodefile"),
	headings[2]: strings.Fields("exact exclusive mem-per-cpu resv-ports"),
	headings[3]: strings.Fields("sockets-per-node cores-per-socket threads-per-core ntasks-per-core " +
		"ntasks-per-socket cpu-bind mem-bind hint extra-node-info"),
	headings[4]: strings.Fields("cpus-per-gpu gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket " +
		"gpus-per-task mem-per-gpu"),
}

// spellings are what Slurm calls the values of options of sbatch, salloc and srun.
var spellings = map[string]string{
	"account": "name", "acctg-freq": "<datatype>=<interval>", "array": "indexes", "bb": "<spec>",
	"bbf": "<file_name>", "bcast": "<dest_path>", "bcast-exclude": "<paths>", "begin": "time", "chdir": "path",
	"cluster-constraint": "list", "clusters": "names", "comment": "name", "compress": "library",
	"constraint": "list", "core-spec": "cores", "cores-per-socket": "C", "cpu-freq": "min[-max[:gov]]",
	"cpus-per-gpu": "n", "cpus-per-task": "ncpus", "deadline": "time", "delay-boot": "mins",
	"dependency": "type:jobid[:time]", "distribution": "type", "epilog": "program", "error": "err",
	"exclude": "hosts...", "exclusive": "user", "export": "env_vars|NONE", "export-file": "file|fd",
	"gid": "group_id", "gpu-bind": "...", "gpu-freq": "...", "gpus": "n", "gpus-per-node": "n",
	"gpus-per-socket": "n", "gpus-per-task": "n", "gres": "list", "gres-flags": "opts", "het-group": "value",
	"immediate": "secs", "input": "in", "job-name": "jobname", "jobid": "id", "kill-command": "signal",
	"licenses": "names", "mail-type": "type", "mail-user": "user", "mcs-label": "mcs", "mem": "MB",
	"mem-per-cpu": "MB", "mem-per-gpu": "n", "mincpus": "n", "mpi": "type", "nice": "value",
	"nodefile": "filename", "nodelist": "hosts...", "nodes": "N", "ntasks": "ntasks", "ntasks-per-core": "n",
	"ntasks-per-node": "n", "ntasks-per-socket": "n", "output": "out", "partition": "partition",
	"power": "flags", "priority": "value", "profile": "value", "prolog": "program", "propagate": "rlimits",
	"qos": "qos", "relative": "n", "reservation": "name", "send-libs": "yes|no", "signal": "[R:]num[@time]",
	"slurmd-debug": "level", "sockets-per-node": "S", "switches": "max-switches{@max-time-to-wait}",
	"task-epilog": "program", "task-prolog": "program", "thread-spec": "threads", "threads": "threads",
	"threads-per-core": "T", "time": "minutes", "time-min": "minutes", "tmp": "MB", "uid": "user_id",
	"wait": "sec", "wckey": "wckey", "wrap": "command",
}
