package mail

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/account"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
)

// words are the values of SLURM_JOB_MAIL_TYPE, as Slurm words its subjects.
var words = map[string]string{
	"BEGIN": "Began", "END": "Ended", "FAIL": "Failed", "REQUEUE": "Requeued", "INVALID_DEPEND": "Invalid dependency",
	"STAGE_OUT": "Staged Out", "TIME_LIMIT": "Reached time limit", "TIME_LIMIT_90": "Reached 90% of time limit",
	"TIME_LIMIT_80": "Reached 80% of time limit", "TIME_LIMIT_50": "Reached 50% of time limit",
}

// told are the variables of a prolog that the mail program gets too.
var told = []string{
	"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NAME", "SLURM_JOB_USER", "SLURM_JOB_UID", "SLURM_JOB_GID",
	"SLURM_JOB_ACCOUNT", "SLURM_JOB_COMMENT", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES",
	"SLURM_JOB_PARTITION", "SLURM_JOB_RESTART_COUNT", "SLURM_JOB_STDIN", "SLURM_JOB_STDOUT", "SLURM_JOB_STDERR",
	"SLURM_JOB_WORK_DIR", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
}

// groupOf is the variable of a job's group. It may ask a directory: not while a commit is published.
func groupOf(gid uint32) []string {
	g, err := account.GroupByGID(gid)
	if err != nil {
		return nil
	}
	return []string{"SLURM_JOB_GROUP=" + plain.Cell(g.Name)}
}

// environment is what the mail program is told of a job, as Slurm 22.05 tells it: what a prolog sees, how long the job
// waited at its start, and at its end how long it ran and how it ended. started is when it began, if it was requeued;
// derived is the worst exit of its steps.
func environment(j *core.Job, kind string, started core.Time, derived core.Exit) []string {
	var out []string
	for _, v := range slurm.HookEnv(j, "", slurm.ClusterInfo{}) {
		if name, value, _ := strings.Cut(v, "="); slices.Contains(told, name) {
			out = append(out, name+"="+plain.Cell(value))
		}
	}
	add := func(name, value string) { out = append(out, name+"="+value) }
	add("SLURM_JOB_STATE", j.State.String())
	word, ok := words[kind]
	if !ok {
		word = kind
	}
	add("SLURM_JOB_MAIL_TYPE", word)
	switch kind {
	case "BEGIN":
		add("SLURM_JOB_QUEUED_TIME", clock(j.Start.Sub(max(j.Submit, j.Eligible))))
	case "REQUEUE":
		var ran time.Duration
		if started != 0 {
			ran = time.Since(started.Go())
		}
		add("SLURM_JOB_RUN_TIME", clock(ran))
	case "END", "FAIL", "TIME_LIMIT":
		var ran time.Duration
		if j.Start != 0 && j.End > j.Start {
			ran = j.End.Sub(j.Start)
		}
		add("SLURM_JOB_RUN_TIME", clock(ran))
		add("SLURM_JOB_EXIT_CODE", strconv.Itoa(int(j.Exit.Code)<<8|int(j.Exit.Signal)))
		add("SLURM_JOB_EXIT_CODE2", fmt.Sprintf("%d:%d", j.Exit.Code, j.Exit.Signal))
		add("SLURM_JOB_EXIT_CODE_MAX", strconv.Itoa(int(j.Exit.Code)))
		add("SLURM_JOB_DERIVED_EC", strconv.Itoa(int(derived.Code)<<8|int(derived.Signal)))
	}
	return out
}
