package manual

import (
	"strings"
	"sync"

	"bireme.dev/bireme/internal/slurm/getopt"
)

// Of makes the page of a command from the table it reads its options by. An option that nobody has described is shown
// without a text.
func Of(name string, p *getopt.Parser) *Page {
	page := pages()[name]
	page.Name = name
	if page.Use == "" {
		page.Use = "[OPTION...]"
	}
	first := map[string]int{} // where an option stands, by its key
	for _, o := range p.Options {
		id := o.Key
		if id == "" {
			id = o.Long
		}
		if at, ok := first[id]; ok && id != "" {
			page.Rows[at].Text += "; also --" + o.Long
			continue
		}
		first[id] = len(page.Rows)
		r := Row{Long: o.Long, Short: o.Short, Arg: o.Arg, Value: "VALUE"}
		key := o.Long
		if key == "" {
			key = string(rune(o.Short))
		}
		text, ok := texts()[name+" "+key]
		if !ok {
			text = texts()[key]
		}
		if value, rest, ok := strings.Cut(text, "|"); ok {
			r.Value, text = value, rest
		}
		r.Text = text
		page.Rows = append(page.Rows, r)
	}
	return &page
}

var pages = sync.OnceValue(func() map[string]Page {
	return map[string]Page{
		"sbatch": {
			Use: "[OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]",
			About: "Submits a batch script. It is read from standard input if none is named; lines that begin with " +
				"#SBATCH hold options.",
		},
		"salloc": {
			Use:   "[OPTIONS(0)...] [ : [OPTIONS(N)]] [command(0) [args(0)...]]",
			About: "Gets nodes and runs a command, or a shell, beside them. They are given back when it ends.",
		},
		"srun": {
			Use: "[OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] " +
				"executable(N) [args(N)...]",
			About: "Runs tasks on nodes. In a job it makes a step of it; outside it gets nodes first.",
		},
		"squeue": {About: "Lists jobs that wait or run, and those that ended a moment ago."},
		"sinfo":  {About: "Lists partitions and nodes, and how they are."},
		"sacct":  {About: "Lists jobs and their steps, also those that ended long ago."},
		"scancel": {
			Use: "[OPTION...] [JOB[_TASK][.STEP]...]",
			About: "Ends jobs, tasks of arrays and steps, or sends them a signal. What is said of jobs with options " +
				"picks those that all of it is true of.",
		},
		"sdiag": {About: "Shows how the server fares: jobs, the planner's passes, and calls with the time they took."},
		"seff":  {Use: "[OPTION...] JOB[_TASK]", About: "Tells how much of its CPUs and memory a job used."},
		"sprio": {About: "Shows what the priorities of waiting jobs are made of."},
		"sstat": {
			Use: "[OPTION...] [-j] JOB[.STEP]...", About: "Shows what running steps use. Their nodes are asked when it is " +
				"called. Of a job without a step it is the first numbered one that runs.",
		},
		"sreport": {
			Use: "[OPTION...] KIND REPORT [KEY=VALUE...]",
			About: "Reports usage of whole hours that are over, yesterday's unless start= and end= say otherwise. Without " +
				"words it reads commands from standard input.",
			Notes: "cluster      AccountUtilizationByUser, UserUtilizationByAccount, UserUtilizationByWckey,\n" +
				"             Utilization, WCKeyUtilizationByUser\n" +
				"job          SizesByAccount, SizesByAccountAndWckey, SizesByWckey\n" +
				"reservation  Utilization\n" +
				"user         TopUsage",
		},
		"strigger": {
			Use: "[--set | --get | --clear] [OPTIONS]",
			About: "Has a program run on the server when something has happened to a node, a job or the server. It gets " +
				"the job, the nodes or the word of the event as its last argument.",
		},
		"sshare": {About: "Shows what belongs to accounts and users, what they used, and the fair-share factor that " +
			"follows."},
		"scontrol": {
			Use: "[OPTION...] COMMAND [WORD...]", About: "Shows single records of the cluster and changes them.",
			Notes: `Commands:
  show config | hostlist LIST | hostlistsorted LIST | hostnames [EXPR] | job [ID] | licenses | node [NAME] |
       partition [NAME] | reservation [NAME] | step [ID] | topology
  update jobid=ID KEY=VALUE... | nodename=NAMES state=STATE reason=TEXT | partitionname=NAME ... |
       reservationname=NAME ...
  hold, uhold, release, requeue, requeuehold, suspend, resume JOB...
  create reservation | partition KEY=VALUE...; delete reservationname=NAME | partitionname=NAME
  write batch_script JOB [FILE|-]; wait_job JOB; top JOB; reconfigure; ping; version; help; exit
Without a command they are read from standard input.`,
		},
		"sacctmgr": {
			Use:   "[OPTION...] VERB ENTITY [SPEC...]",
			About: "Shows and changes accounts, users, associations and qualities of service.",
			Notes: `Verbs: add, modify ... set, delete, show (list), dump.
Entities: account, association, cluster, configuration, qos, stats, transactions, tres, user.
For example: sacctmgr -i add account physics parent=root
             sacctmgr -i modify user ann set maxjobs=10
             sacctmgr show assoc tree format=account,user,share`,
		},
		"sbcast":  {Use: "[OPTIONS] SOURCE DEST", About: "Copies a file to all nodes of a job."},
		"sattach": {Use: "[options] <jobid.stepid>", About: "Joins the streams of a step that runs."},
		"scrontab": {Use: "[OPTION...] [FILE|-]", About: "Shows and changes the jobs that come again by the clock. A " +
			"line #SCRON holds options of sbatch for the entry below it."},
	}
})

// texts says what options do: for one command, or for all that have an option of that name. What stands before a bar is
// the name of the value.
var texts = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"sdiag all": "ignored: everything is always shown", "reset": "count from now on",
		"sort-by-id": "calls by number", "sort-by-time": "calls by the time they took",
		"sort-by-time2": "calls by the average time they took",
		"sprio norm":    "factors between 0 and 1 instead of points", "weights": "the weights of the factors instead of jobs",
		"sprio user": "NAMES|only jobs of these users", "sprio sort": "FIELDS|by these fields; -FIELD: descending",
		"sstat allsteps": "all running steps of a job, the script's too", "sstat jobs": "JOB[.STEP],...|these steps",
		"sstat pidformat": "the processes of the steps instead of what they use",
		"sstat noconvert": "sizes in bytes", "sstat verbose": "nothing: it says little anyway",
		"sreport all_clusters": "of all clusters; there is one", "sreport federation": "as all_clusters",
		"sreport local": "of this cluster", "sreport cluster": "NAMES|of these clusters",
		"sreport t":       "FORMAT|times as Seconds, Minutes, Hours, Percent, SecPer, MinPer or HourPer",
		"sreport tres":    "NAMES|these resources instead of CPUs, or ALL",
		"sreport quiet":   "nothing: it says little anyway",
		"sreport verbose": "nothing: it says little anyway",
		"sshare accounts": "NAMES|only these accounts", "sshare all": "all users", "sshare users": "NAMES|only these users",
		"sshare Users": "users alone, without accounts", "sshare partition": "also the partition of an association",
		"strigger set": "make a trigger", "strigger get": "list triggers", "strigger clear": "remove triggers",
		"strigger burst_buffer": "a burst buffer fails: never", "strigger front_end": "of front end nodes: there are none",
		"strigger primary_slurmctld_failure":           "the first server fails: kept, never told",
		"strigger primary_slurmctld_resumed_operation": "the server has started",
		"strigger primary_slurmctld_resumed_control":   "the server has started and leads",
		"strigger primary_slurmctld_acct_buffer_full":  "kept, never told: there is no such buffer",
		"strigger backup_slurmctld_failure":            "kept, never told",
		"strigger backup_slurmctld_resumed_operation":  "kept, never told",
		"strigger backup_slurmctld_assumed_control":    "kept, never told",
		"strigger primary_slurmdbd_failure":            "kept, never told: there is no slurmdbd",
		"strigger primary_slurmdbd_resumed_operation":  "kept, never told: there is no slurmdbd",
		"strigger primary_database_failure":            "the server can write nothing to its database",
		"strigger primary_database_resumed_operation":  "the server can write again",
		"strigger down": "a node goes down or is not heard", "strigger up": "a node is back that was down",
		"strigger drained": "the last job has left a node that is drained", "strigger fail": "a node is set to fail",
		"strigger idle": "a node has been idle for --offset", "strigger reconfig": "other settings hold",
		"strigger time": "a job reaches its time limit", "strigger fini": "a job has ended",
		"strigger flags": "perm|it stays after it has fired", "strigger id": "#|the trigger of this number",
		"strigger jobid": "#|of this job", "strigger node": "NODES|of these nodes; none: all",
		"strigger offset":  "#|seconds after the event; negative: before a time limit",
		"strigger program": "PATH|what to run, with its arguments", "strigger user": "USER|of this user",
		"strigger quiet": "no word and no exit code of what the server refuses",
		"account":        "NAMES|only jobs of these accounts", "accounts": "NAMES|only jobs of these accounts",
		"all":         "also what is hidden from others",
		"allclusters": "there is one cluster", "allocations": "jobs alone, without their steps",
		"allusers": "jobs of everybody",
		"array":    "each task of an array on a line of its own", "array-unique": "an array's tasks as one",
		"associations": "IDS|only jobs of these associations",
		"batch":        "signal the script alone, not what it started", "batch-script": "print the script of a job",
		"bg": "ignored", "brief": "number, state and exit code",
		"cluster": "NAME|there is one cluster", "clusters": "NAMES|there is one cluster", "completion": "ignored",
		"constraints": "FEATURES|only jobs that asked for these",
		"cron":        "also jobs of scrontab", "ctld": "ignored: signals always pass through the server",
		"dead":      "only nodes that do not answer",
		"delimiter": "TEXT|what separates the fields of -p and -P", "details": "more of each record",
		"duplicates": "also earlier attempts of the same job",
		"endtime":    "TIME|only jobs that began before", "env-vars": "print the environment of a job",
		"exact":      "do not put nodes together that differ",
		"federation": "there is one cluster", "file": "PATH|ignored: there are no such files",
		"flags":  "LIST|only jobs that were started in this way",
		"format": "FIELDS|what to print", "Format": "FIELDS|what to print, by long names",
		"full": "signal the script and the steps", "future": "also nodes that are not there yet",
		"gid": "GROUPS|only jobs of these groups", "help": "this text", "helpformat": "list the fields",
		"hide": "not what is hidden", "hurry": "ignored",
		"immediate": "commit changes immediately", "interactive": "ask before each job",
		"iterate": "SECONDS|print again and again", "jobs": "IDS|only these jobs",
		"json": "VERSION|print JSON", "licenses": "NAMES|only jobs with these licenses",
		"list-reasons": "why nodes are down or drained", "local": "there is one cluster",
		"long": "more columns", "me": "only jobs of your own", "name": "NAMES|only jobs of these names",
		"ncpus":  "N|only jobs with so many CPUs",
		"nnodes": "N|only jobs with so many nodes", "noconvert": "no larger units", "Node": "a line a node",
		"nodelist": "NODES|only jobs on these nodes",
		"nodes":    "NODES|only these nodes", "noheader": "no titles", "oneliner": "a line a record",
		"parsable":  "fields between bars, also after the last",
		"parsable2": "fields between bars", "partition": "NAMES|only these partitions",
		"priority": "a line for each partition a job may run in",
		"qos":      "NAMES|only jobs of these qualities of service", "quiet": "say only what is wrong",
		"readonly": "change nothing", "reason": "TEXT|only jobs that wait for this",
		"reservation": "NAMES|only jobs in these reservations", "responding": "only nodes that answer",
		"sibling": "NAME|there is one cluster", "signal": "SIGNAL|send this instead of ending them",
		"sort": "FIELDS|in which order; - before a field turns it round", "start": "when jobs that wait should start",
		"starttime": "TIME|only jobs that ended after",
		"state":     "STATES|only jobs in these states", "states": "STATES|only what is in these states",
		"steps": "IDS|steps instead of jobs", "summarize": "a line a partition",
		"timelimit-max": "TIME|only jobs with at most this limit", "timelimit-min": "TIME|only jobs with at least " +
			"this limit", "truncate": "cut times to --starttime and --endtime",
		"uid": "USERS|only jobs of these users", "units": "K|M|G|T: sizes in this unit",
		"usage": "the options in short", "user": "USERS|only jobs of these users",
		"users": "USERS|only jobs of these users", "verbose": "say more",
		"version": "print the version of Slurm that is imitated", "wckey": "KEYS|only jobs with these keys",
		"wckeys":       "KEYS|only jobs with these keys",
		"whole-hetjob": "yes|no: all components of a het job, or those named", "yaml": "VERSION|print YAML",

		"sacct array": "each task of an array on a line of its own", "sacct partition": "NAMES|only jobs of these " +
			"partitions", "squeue partition": "NAMES|only jobs of these partitions",
		"sacctmgr associations": "with associations", "sacctmgr oneliner": "a line a record",
		"scontrol uid":      "USER|refused; an administrator acts as one",
		"scancel partition": "NAMES|only jobs of these partitions", "sinfo reservation": "advance reservations",
		"sinfo states":   "STATES|only nodes in these states",
		"squeue sibling": "there is one cluster", "scancel user": "USER|only jobs of this user",

		"sbcast fanout": "N|how many copies one node passes on", "sbcast force": "replace a file that is there",
		"sbcast preserve": "keep times, mode and owner",
		"sbcast jobid":    "JOB[.STEP]|the job whose nodes get it", "sbcast compress": "LIBRARY|compress on the way",
		"sbcast size":    "SIZE|of each block",
		"sbcast timeout": "SECONDS|how long a node may take",
		"sbcast exclude": "PATHS|directories whose libraries stay", "sbcast send-libs": "yes|no: shared libraries too",
		"scrontab edit": "change the table with $VISUAL, $EDITOR or vi", "scrontab list": "print the table",
		"scrontab remove": "end all its jobs",
		"scrontab user":   "USER|whose table; administrators only",
		"sattach label":   "put the task's number before each line",
		"sattach layout":  "print where the tasks are, and leave", "sattach pty": "give task 0 your terminal",
		"sattach input-filter": "TASK|send input to this task alone", "sattach output-filter": "TASK|output of this " +
			"task alone", "sattach error-filter": "TASK|errors of this task alone",
	}
})
