package multicall

import (
	"testing"
)

// TestSubmitHelpMarks: what people and programs look for in the help of the commands that run jobs (usage-help).
func TestSubmitHelpMarks(t *testing.T) {
	t.Parallel()
	const helpOptions = "\n\nHelp options:\n"
	marks := map[string][]string{
		"srun --help": {
			"^Usage: srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) [args(N)...]\n",
			"\n\nParallel run options:\n", "\n\nConstraint options:\n", "\n\nConsumable resources related options:\n",
			"\n\nAffinity/Multi-core options: (when the task/affinity plugin is enabled)\n",
			"\n\nGPU scheduling options:\n", helpOptions, "\n\nOther options:\n", "\n  -b, --begin=time ",
			"\n  -N, --nodes=N ", "\n  -q, --qos=qos ", "--mincpus=n ", "\n  -G, --gpus=n ",
		},
		"sbatch --help": {
			"^Usage: sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]\n",
			"\n\nParallel run options:\n", helpOptions, "\n  -a, --array=indexes ",
		},
		"salloc --help": {
			"^Usage: salloc [OPTIONS(0)...] [ : [OPTIONS(N)]] [command(0) [args(0)...]]\n", helpOptions,
		},
		"sbcast --help":   {"^Usage: sbcast [OPTIONS] SOURCE DEST\n", helpOptions},
		"sattach --help":  {"^Usage: sattach [options] <jobid.stepid>\n", helpOptions},
		"srun --usage":    {"^Usage: srun [-N nnodes] ", "executable [args...]\n$"},
		"sbatch --usage":  {"^Usage: sbatch [-N nnodes] ", "executable [args...]\n$"},
		"salloc --usage":  {"^Usage: salloc [-N numnodes|[min nodes]-[max nodes]] ", "[command [args...]]\n$"},
		"sattach --usage": {"^Usage: sattach [options] <jobid.stepid>\n$"},
		"sbcast --usage":  {"^Usage: sbcast [--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST\n$"},
	}
	checkMarks(t, marks)
}
