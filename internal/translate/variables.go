package translate

import (
	"regexp"
	"slices"
	"sync"
)

// variable is one that commands find under one front end, and what there is under the other.
type variable struct {
	name string
	make string // the expression that gives it; "": nothing does
	once bool   // it is the same on all nodes, and made where the batch script runs
	text string // what a note says
}

// dstackVariables are made by lines of a script, where its commands use them.
var dstackVariables = []variable{
	{"DSTACK_RUN_NAME", `"$SLURM_JOB_NAME"`, true, "SLURM_JOB_NAME"},
	{"DSTACK_RUN_ID", `"$SLURM_JOB_ID"`, true, "SLURM_JOB_ID"},
	{"DSTACK_JOB_ID", `"$SLURM_JOB_ID"`, true, "SLURM_JOB_ID"},
	{"DSTACK_NODES_NUM", `"$SLURM_JOB_NUM_NODES"`, true, "SLURM_JOB_NUM_NODES"},
	{"DSTACK_NODE_RANK", `"$SLURM_NODEID"`, false, "SLURM_NODEID"},
	{"DSTACK_GPUS_PER_NODE", `"${SLURM_GPUS_ON_NODE:-0}"`, false, "SLURM_GPUS_ON_NODE"},
	{
		"DSTACK_GPUS_NUM", `"$((SLURM_JOB_NUM_NODES * ${SLURM_GPUS_ON_NODE:-0}))"`, false,
		"SLURM_GPUS_ON_NODE times SLURM_JOB_NUM_NODES",
	},
	{
		"DSTACK_NODES_IPS", `"$(scontrol show hostnames "$SLURM_JOB_NODELIST")"`, true,
		"the names of the nodes, from SLURM_JOB_NODELIST",
	},
	{
		"DSTACK_MASTER_NODE_IP", `"$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"`, true,
		"the name of the first node, from SLURM_JOB_NODELIST",
	},
	{
		"DSTACK_MPI_HOSTFILE", `"${TMPDIR:-/tmp}/mpi-hostfile-$SLURM_JOB_ID"; scontrol show hostnames ` +
			`"$SLURM_JOB_NODELIST" | sed "s/\$/ slots=${SLURM_GPUS_ON_NODE:-1}/" >"$DSTACK_MPI_HOSTFILE"`, true,
		"a file that the script writes, with the names of the nodes",
	},
	{"DSTACK_WORKING_DIR", `"$PWD"`, false, "PWD"},
}

// slurmVariables are those of which dstack has one of its own.
var slurmVariables = map[string]string{
	"SLURM_NODELIST":       "DSTACK_NODES_IPS has the nodes' addresses, one a line",
	"SLURM_JOB_NODELIST":   "DSTACK_NODES_IPS has the nodes' addresses, one a line",
	"SLURM_PROCID":         "DSTACK_NODE_RANK is the node's",
	"SLURM_NODEID":         "DSTACK_NODE_RANK is the same",
	"SLURM_NTASKS":         "DSTACK_GPUS_NUM, where there is a task for each GPU",
	"SLURM_NPROCS":         "DSTACK_GPUS_NUM, where there is a task for each GPU",
	"SLURM_NNODES":         "DSTACK_NODES_NUM is the same",
	"SLURM_JOB_NUM_NODES":  "DSTACK_NODES_NUM is the same",
	"SLURM_GPUS_ON_NODE":   "DSTACK_GPUS_PER_NODE is the same",
	"SLURM_JOB_ID":         "DSTACK_JOB_ID is the same",
	"SLURM_JOBID":          "DSTACK_JOB_ID is the same",
	"SLURM_JOB_NAME":       "DSTACK_RUN_NAME is the run's",
	"SLURM_SUBMIT_DIR":     "is where apply was called; DSTACK_WORKING_DIR is where the commands start",
	"SLURM_ARRAY_TASK_ID":  "dstack has no arrays",
	"SLURM_ARRAY_JOB_ID":   "dstack has no arrays",
	"SLURM_CPUS_PER_TASK":  "nproc says how many CPUs there are",
	"SLURM_CPUS_ON_NODE":   "nproc says how many CPUs there are",
	"SLURM_RESTART_COUNT":  "dstack does not tell attempts apart",
	"SLURM_LOCALID":        "it is 0: there is one task on each node",
	"SLURM_JOB_PARTITION":  "the key partition",
	"SLURM_JOB_ACCOUNT":    "the project of the run",
	"SLURM_MEM_PER_NODE":   "resources.memory",
	"SLURM_ARRAY_TASK_MAX": "dstack has no arrays", "SLURM_ARRAY_TASK_MIN": "dstack has no arrays",
	"SLURM_ARRAY_TASK_COUNT": "dstack has no arrays", "SLURM_ARRAY_TASK_STEP": "dstack has no arrays",
}

var (
	slurmName  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bSLURM_[A-Z0-9_]+\b`) })
	dstackName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bDSTACK_[A-Z0-9_]+\b`) })
	stepWord   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)(?:^|[;&|(])[ \t]*(srun|scontrol|sbcast|sbatch|module)[ \t]`)
	})
)

// variablesOfScript lists the variables of Slurm that a script's commands use. A YAML run of this cluster has them too,
// because it is a job.
func variablesOfScript(n *notes, body string, contained bool) {
	for _, name := range unique(slurmName().FindAllString(body, -1)) {
		text := "is set here too"
		if name == "SLURM_TMPDIR" && contained {
			text = "is not set in a container; /tmp there is the run's own"
		} else if own, ok := slurmVariables[name]; ok {
			text += "; " + own
		}
		n.add(Variable, name, text)
	}
	if !contained {
		return
	}
	for _, m := range stepWord().FindAllStringSubmatch(body, -1) {
		n.add(Differs, m[1], "is a command of the node, not of the image")
	}
}

// variablesOfCommands gives the lines that make dstack's variables, for the whole job and for each node, and lists
// them.
func variablesOfCommands(n *notes, body string, nodes int) (job, node []string) {
	used := unique(dstackName().FindAllString(body, -1))
	for _, v := range dstackVariables {
		i := slices.Index(used, v.name)
		if i < 0 {
			continue
		}
		used = slices.Delete(used, i, i+1)
		n.add(Variable, v.name, "is made from "+v.text)
		from := v.make
		if nodes == 1 && (v.name == "DSTACK_NODES_IPS" || v.name == "DSTACK_MASTER_NODE_IP") {
			from = `"$(hostname)"`
		}
		line := "export " + v.name + "=" + from + " " + lineMark + " as in a YAML run"
		if v.once {
			job = append(job, line)
		} else {
			node = append(node, line)
		}
	}
	for _, name := range used {
		n.add(Variable, name, "is not set for a batch script")
	}
	return job, node
}

func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
