package slurm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/getopt"
	"bireme.dev/bireme/internal/slurm/slurmtest"
)

const (
	b   = slurm.Sbatch
	a   = slurm.Salloc
	r   = slurm.Srun
	all = b | a | r
)

// An option of Slurm's core and common groups: what it is given, and what must be seen of it in the request, as paths
// into its JSON. It must be seen whichever way it is given: --option=value, --option value, a prefix, -o value,
// -ovalue, #SBATCH and a variable, as far as Slurm has these.
type sheetRow struct {
	option string
	tools  slurm.Tool
	value  string
	with   string // further options that it needs
	seen   string // path=value, separated by blanks
}

var coreRows = []sheetRow{
	{"job-name", all, "deep", "", "spec.name=deep"},
	{"nodes", all, "2-4", "", "spec.shape.nodes_min=2 spec.shape.nodes_max=4"},
	{"ntasks", all, "7", "", "spec.shape.tasks=7"},
	{"ntasks-per-node", all, "3", "-N2", "spec.shape.tasks_per_node=3 spec.shape.tasks=6"},
	{"cpus-per-task", all, "5", "", "spec.shape.cpus_per_task=5"},
	{"time", all, "1-02:03", "", "spec.time_limit=93780"},
	{"mem", all, "2G", "", "spec.shape.mem_per_node=2147483648"},
	{"mem-per-cpu", all, "3", "", "spec.shape.mem_per_cpu=3145728"},
	{"partition", all, "long,short", "", "spec.partition=long,short"},
	{"output", b | r, "o-%j", "", "spec.io.stdout=o-%j"},
	{"error", b | r, "e-%j", "", "spec.io.stderr=e-%j"},
	{"input", b | r, "in", "", "spec.io.stdin=in"},
	{"array", b, "1-9:2%3", "", "spec.array=1-9:2 spec.array_limit=3"},
	{"account", all, "physics", "", "spec.project=physics"},
	{"qos", all, "high", "", "spec.qos=high"},
	{"gres", all, "gpu:a100:2", "", "spec.shape.gres.0.type=a100 spec.shape.gres.0.count=2"},
	{"gpus", all, "a100:4", "", "spec.shape.more.gpus.0.count=4"},
	{"gpus-per-node", all, "2", "", "spec.shape.gres.0.name=gpu spec.shape.gres.0.count=2"},
	{"gpus-per-task", all, "2", "-n3", "spec.shape.more.gpus_per_task.0.count=2"},
	{"dependency", all, "afterok:7", "", "spec.extra.dependency=afterok:7"},
	{"mail-type", all, "END,fail", "", "spec.extra.mail_types=END,FAIL"},
	{"mail-user", all, "ann@site", "", "spec.extra.mail_user=ann@site"},
	{"constraint", all, "fast&big", "", "spec.extra.constraint=fast&big"},
	{"chdir", all, "sub", "", "spec.io.workdir=/home/u/sub"},
	{"exclusive", all, "", "", "spec.shape.exclusive=true"},
	{"exclusive", all, "user", "", "spec.shape.more.exclusive_user=true"},
	{"export", b | r, "NONE", "", "env=SLURM_EXPORT_ENV=NONE"},
	{"wrap", b, "hostname", "", "ask.Wrap=hostname"},
	{"nodelist", all, "n[1-2]", "", "spec.extra.nodelist=n[1-2]"},
	{"exclude", all, "n3", "", "spec.extra.exclude=n3"},
	{"parsable", b, "", "", "ask.Parsable=true"},
	{"wait", b, "", "", "ask.Wait=true"},
	{"hold", all, "", "", "spec.hold=true"},
	{"test-only", b | r, "", "", "ask.TestOnly=true"},
}

var commonRows = []sheetRow{
	{"begin", all, "now+60", "", "spec.begin=1794704460000000"},
	{"comment", all, "why", "", "spec.extra.comment=why"},
	{"cpus-per-gpu", all, "4", "-G1", "spec.shape.more.cpus_per_gpu=4"},
	{"mem-per-gpu", all, "1G", "-G1", "spec.shape.more.mem_per_gpu=1073741824"},
	{"gpus-per-socket", all, "1", "--sockets-per-node=2", "spec.shape.more.gpus_per_socket.0.count=1"},
	{"ntasks-per-gpu", all, "2", "-G2", "spec.shape.more.tasks_per_gpu=2 spec.shape.tasks=4"},
	{"cpu-bind", r, "cores", "", "spec.extra.options.cpu-bind=cores"},
	{"gpu-bind", all, "single:2", "", "spec.extra.options.gpu-bind=single:2"},
	{"tres-bind", all, "gres/gpu:per_task:1", "", "spec.extra.options.gpu-bind=per_task:1"},
	{"mem-bind", all, "local", "", "spec.extra.options.mem-bind=local"},
	{"deadline", all, "now+120", "", "spec.extra.deadline=1794704520000000"},
	{"distribution", all, "cyclic:block", "", "spec.extra.distribution=cyclic:block"},
	{"get-user-env", b, "", "", "spec.extra.login_env=true"},
	{"gid", all, "0", "", "spec.extra.options.gid=0"},
	{"hint", all, "nomultithread", "", "spec.shape.more.one_thread=true"},
	{"immediate", a | r, "60", "", "ask.Immediate=60000000000"},
	{"licenses", all, "matlab:2", "", "spec.extra.licenses=matlab:2"},
	{"mincpus", all, "8", "", "spec.shape.min_cpus=8"},
	{"tmp", all, "1G", "", "spec.extra.tmp_disk=1073741824"},
	{"nice", all, "7", "", "spec.nice=7"},
	{"no-kill", all, "", "", "spec.extra.options.no-kill="},
	{"no-kill", all, "off", "", "spec.extra.options.no-kill=off"},
	{"no-requeue", b, "", "", "spec.requeue=<none>"},
	{"requeue", b, "", "", "spec.requeue=true"},
	{"ntasks-per-core", all, "2", "", "spec.shape.more.tasks_per_core=2"},
	{"ntasks-per-socket", all, "2", "", "spec.shape.more.tasks_per_socket=2"},
	{"threads-per-core", all, "2", "", "spec.shape.more.threads=2"},
	{"sockets-per-node", all, "2", "", "spec.shape.more.sockets=2"},
	{"cores-per-socket", all, "2", "", "spec.shape.more.cores=2"},
	{"extra-node-info", all, "2:4:*", "", "spec.shape.more.sockets=2 spec.shape.more.cores=4"},
	{"open-mode", b | r, "append", "", "spec.io.append=true"},
	{"overcommit", all, "", "-n8", "spec.shape.tasks=1 spec.extra.options.ntasks=8"},
	{"oversubscribe", all, "", "", "spec.shape.more.oversubscribe=true"},
	{"prefer", all, "fast", "", "spec.extra.prefer=fast"},
	{"priority", all, "9", "", "spec.extra.priority=9"},
	{"propagate", all, "NOFILE", "", "env=SLURM_RLIMIT_NOFILE=U1024"},
	{"quiet", all, "", "", "ask.Quiet=true"},
	{"verbose", all, "", "", "ask.Verbose=1"},
	{"reservation", all, "maint", "", "spec.extra.reservation=maint"},
	{"signal", all, "B:USR1@120", "", "spec.extra.signal.signal=10 spec.extra.signal.before=120 " +
		"spec.extra.signal.batch=true"},
	{"switches", all, "2@10", "", "spec.extra.switches=2@10"},
	{"time-min", all, "5", "", "spec.extra.time_min=300"},
	{"tres-per-task", all, "cpu=2", "", "spec.shape.cpus_per_task=2"},
	{"uid", all, "root", "", "spec.user=root"},
	{"use-min-nodes", all, "", "", "spec.shape.more.use_min_nodes=true"},
	{"spread-job", all, "", "", "spec.shape.more.spread_job=true"},
	{"contiguous", all, "", "", "spec.extra.contiguous=true"},
	{"wckey", all, "key", "", "spec.extra.wckey=key"},
	{"clusters", all, "anchor", "", "ask.Clusters.0=anchor"},
	{"x11", slurm.Salloc | slurm.Srun, "first", "", "step.X11=first"},
}

// refused are the options of these groups that do not work, with a value that they would take.
var refused = map[string]string{}

// rare are the options of Slurm's remaining groups: they work, or are refused by name.
var rare = strings.Fields(
	`acctg-freq batch bb bbf bcast bcast-exclude send-libs compress cluster-constraint container container-id runtime
	core-spec thread-spec cpu-freq gpu-freq delay-boot export-file extra gres-flags ignore-pbs kill-on-invalid-dep
mcs-label mem-update
	network nodefile oom-kill-step profile reboot resources resv-ports segment spread-segments consolidate-segments stepmgr
	wait-all-nodes bell no-bell no-shell kill-command container-image`)

// flat is a request as a map of paths to texts.
func flat(t *testing.T, req *slurm.Request) map[string]string {
	t.Helper()
	if _, err := req.Finish(); err != nil {
		t.Fatal(err)
	}
	env := req.JobEnviron(nil, slurm.Process{Umask: 0o022, Limits: map[string]uint64{"NOFILE": 1024}})
	text, err := json.Marshal(map[string]any{
		"spec": req.Spec, "ask": req.Ask, "step": req.Step,
		"env": strings.Join(slices.DeleteFunc(env, func(e string) bool {
			return strings.HasPrefix(e, "SLURM_PRIO_PROCESS=") || e == "SLURM_RLIMIT_NOFILE=1024"
		}), " "),
	})
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(strings.TrimPrefix(path+"."+k, "."), x)
			}
		case []any:
			for i, x := range v {
				walk(fmt.Sprintf("%s.%d", path, i), x)
			}
		default:
			out[path] = fmt.Sprint(v)
		}
	}
	walk("", tree)
	return out
}

func fresh(tool slurm.Tool) *slurm.Request {
	return slurm.NewRequest(tool, slurmtest.Day("01:00:00").Go().UTC(), "/home/u")
}

// ways are the ways to give an option; each fills a fresh request.
func ways(t *testing.T, row sheetRow, tool slurm.Tool) map[string]func(*slurm.Request) error {
	t.Helper()
	o := slurm.OptionOf(tool, row.option)
	if o == nil {
		t.Fatalf("%s has no --%s", tool, row.option)
	}
	args := func(words ...string) func(*slurm.Request) error {
		return func(req *slurm.Request) error {
			_, err := req.Args(append(strings.Fields(row.with), words...))
			return err
		}
	}
	script := func(text string) func(*slurm.Request) error {
		return func(req *slurm.Request) error {
			return req.Script("job.sh", []byte("#!/bin/sh\n#SBATCH "+row.with+" "+text+"\ntrue\n"))
		}
	}
	full, out := "--"+row.option, map[string]func(*slurm.Request) error{}
	with := full
	if row.value != "" {
		with += "=" + row.value
	}
	out["long"] = args(with)
	out["prefix"] = args(strings.Replace(with, full, "--"+prefixOf(tool, row.option), 1))
	if o.Arg == getopt.RequiredArg {
		out["two words"] = args(full, row.value)
	}
	if o.Short != 0 {
		short := "-" + string(rune(o.Short))
		out["short"] = args(short + row.value)
		if o.Arg == getopt.RequiredArg {
			out["short, two words"] = args(short, row.value)
		}
	}
	if tool == slurm.Sbatch && row.option != "wrap" {
		out["#SBATCH"] = script(strings.ReplaceAll(with, "&", `\&`))
	}
	for _, name := range o.VariablesOf(tool) {
		out[name] = func(req *slurm.Request) error {
			value := row.value
			if value == "" && o.Arg == getopt.NoArg {
				value = "1"
			}
			if err := req.Environ(func(n string) (string, bool) { return value, n == name }); err != nil {
				return err
			}
			_, err := req.Args(strings.Fields(row.with))
			return err
		}
	}
	return out
}

// prefixOf is the shortest unambiguous beginning of an option's name.
func prefixOf(tool slurm.Tool, name string) string {
	for n := 1; n < len(name); n++ {
		fits := 0
		for _, o := range slurm.Options() {
			if o.Tools&tool != 0 && strings.HasPrefix(o.Long, name[:n]) {
				fits++
			}
		}
		if fits == 1 {
			return name[:n]
		}
	}
	return name
}

func TestEveryOption(t *testing.T) {
	t.Parallel()
	for _, row := range append(slices.Clone(coreRows), commonRows...) {
		for _, tool := range []slurm.Tool{b, a, r} {
			if row.tools&tool == 0 {
				continue
			}
			t.Run(tool.String()+" "+row.option, func(t *testing.T) {
				t.Parallel()
				seen := ""
				plain := fresh(tool)
				if _, err := plain.Args(strings.Fields(row.with)); err != nil {
					t.Fatal(err)
				}
				without := flat(t, plain)
				for way, give := range ways(t, row, tool) {
					req := fresh(tool)
					if err := give(req); err != nil {
						t.Errorf("%s: %v", way, err)
						continue
					}
					got := flat(t, req)
					for want := range strings.FieldsSeq(row.seen) {
						path, value, _ := strings.Cut(want, "=")
						have, ok := got[path]
						if !ok {
							have = "<none>"
						}
						if have != value {
							t.Errorf("%s: %s is %q, want %q", way, path, have, value)
						}
					}
					if row.option != "requeue" && cmp.Equal(got, without) {
						t.Errorf("%s: nothing is different from a request without it", way)
					}
					if text := fmt.Sprint(got); seen == "" {
						seen = text
					} else if text != seen {
						t.Errorf("%s gives something else than the other ways:\n%s\n%s", way, text, seen)
					}
				}
			})
		}
	}
}

// The groups are complete: an option that is in no list is missing, and one that is refused says so with its name and a
// line that helps.
func TestSheetIsCovered(t *testing.T) {
	t.Parallel()
	rows := append(slices.Clone(coreRows), commonRows...)
	names := map[string]bool{}
	for _, row := range rows {
		names[row.option] = true
	}
	for _, name := range strings.Fields(sheet) {
		_, no := refused[name]
		if names[name] == no {
			t.Errorf("--%s must either be tested or be among the refused", name)
		}
	}
	if len(refused)*20 > len(names)+len(refused) {
		t.Errorf("%d options are refused of %d: more than one in twenty", len(refused), len(names)+len(refused))
	}
	refusable := map[string]string{}
	for name, value := range refused {
		refusable[name] = value
	}
	for _, name := range rare {
		refusable[name] = "1"
	}
	for name, value := range refusable {
		found := false
		for _, tool := range []slurm.Tool{b, a, r} {
			o := slurm.OptionOf(tool, name)
			if o == nil {
				continue
			}
			found = true
			word := "--" + name
			if o.Arg != getopt.NoArg && value != "" {
				word += "=" + value
			}
			req := fresh(tool)
			_, err := req.Args([]string{word})
			if err == nil {
				_, err = req.Finish()
			}
			_, mustFail := refused[name]
			var c *slurm.Complaint
			switch {
			case err == nil && !mustFail:
			case !errors.As(err, &c):
				t.Errorf("%s %s: %v, want a refusal", tool, word, err)
			case strings.Contains(c.Error(), "is not supported") && (!strings.Contains(c.Error(), "--"+name) || c.Hint == ""):
				t.Errorf("%s %s: %q (hint %q), want its name and a line that helps", tool, word, c, c.Hint)
			}
		}
		if !found {
			t.Errorf("nobody knows --%s", name)
		}
	}
}

// sheet is Slurm's core and common options.
const sheet = `job-name nodes ntasks ntasks-per-node cpus-per-task time mem mem-per-cpu partition output error input
array account qos gres
	gpus gpus-per-node gpus-per-task dependency mail-type mail-user constraint chdir exclusive export wrap
nodelist exclude parsable wait
	hold test-only
	begin comment cpus-per-gpu mem-per-gpu gpus-per-socket ntasks-per-gpu cpu-bind gpu-bind tres-bind mem-bind
deadline distribution
	get-user-env hint immediate licenses mincpus tmp nice no-kill no-requeue requeue ntasks-per-core
ntasks-per-socket threads-per-core
	sockets-per-node cores-per-socket extra-node-info open-mode overcommit oversubscribe prefer priority propagate
quiet verbose
	reservation signal switches time-min tres-per-task uid gid use-min-nodes spread-job contiguous wckey clusters x11`

// Every input variable of Slurm is some option's.
func TestEveryInputVariable(t *testing.T) {
	t.Parallel()
	for tool, names := range map[slurm.Tool]string{
		b: `ACCOUNT ACCTG_FREQ ARRAY_INX BATCH BURST_BUFFER CLUSTERS CLUSTER_CONSTRAINT CONSTRAINT CONTAINER
CONTAINER_ID CORE_SPEC CPU_FREQ_REQ
			CPUS_PER_GPU DEBUG DELAY_BOOT DISTRIBUTION ERROR EXCLUSIVE EXPORT GET_USER_ENV GPU_BIND
GPU_FREQ GPUS GPUS_PER_NODE GPUS_PER_SOCKET
			GPUS_PER_TASK GRES GRES_FLAGS HINT IGNORE_PBS INPUT JOB_NAME MEM_BIND MEM_PER_CPU MEM_PER_GPU
MEM_PER_NODE NETWORK NO_KILL NO_REQUEUE
			OPEN_MODE OUTPUT OVERCOMMIT PARTITION PROFILE QOS REQ_SWITCH REQUEUE RESERVATION SEGMENT_SIZE
SIGNAL SPREAD_JOB THREAD_SPEC
			THREADS_PER_CORE TIMELIMIT TRES_BIND TRES_PER_TASK USE_MIN_NODES WAIT WAIT_ALL_NODES WCKEY
SLURM_CLUSTERS SLURM_HINT`,
		a: `ACCOUNT ACCTG_FREQ BELL BURST_BUFFER CLUSTERS CONSTRAINT CONTAINER CORE_SPEC CPUS_PER_GPU DEBUG
DELAY_BOOT EXCLUSIVE GPU_BIND GPU_FREQ
			GPUS GPUS_PER_NODE GPUS_PER_TASK GRES GRES_FLAGS HINT IMMEDIATE KILL_CMD MEM_BIND MEM_PER_CPU
MEM_PER_GPU MEM_PER_NODE NETWORK NO_BELL
			NO_KILL OVERCOMMIT PARTITION PROFILE QOS REQ_SWITCH RESERVATION SEGMENT_SIZE SIGNAL SPREAD_JOB
THREAD_SPEC THREADS_PER_CORE TIMELIMIT
			TRES_BIND TRES_PER_TASK USE_MIN_NODES WAIT_ALL_NODES WCKEY`,
		r: `ACCOUNT ACCTG_FREQ BCAST BURST_BUFFER CLUSTERS COMPRESS CONSTRAINT CORE_SPEC CPU_BIND CPU_FREQ_REQ
CPUS_PER_GPU CPUS_PER_TASK DEBUG
			DELAY_BOOT DEPENDENCY DISABLE_STATUS DISTRIBUTION EPILOG EXACT EXCLUSIVE EXPORT_ENV GPU_BIND
GPU_FREQ GPUS GPUS_PER_NODE GPUS_PER_TASK
			GRES GRES_FLAGS HINT IMMEDIATE JOB_NAME JOB_NUM_NODES KILL_BAD_EXIT LABELIO MEM_BIND
MEM_PER_CPU MEM_PER_GPU MEM_PER_NODE MPI_TYPE
			NETWORK NNODES NO_KILL NPROCS NTASKS NTASKS_PER_CORE NTASKS_PER_GPU NTASKS_PER_NODE
NTASKS_PER_SOCKET OPEN_MODE OVERCOMMIT OVERLAP
			PARTITION PROFILE PROLOG QOS REMOTE_CWD REQ_SWITCH RESERVATION RESV_PORTS SIGNAL SPREAD_JOB
STEP_GRES TASK_EPILOG TASK_PROLOG
			THREAD_SPEC THREADS THREADS_PER_CORE TIMELIMIT TRES_BIND TRES_PER_TASK UNBUFFEREDIO
USE_MIN_NODES WAIT WCKEY WORKING_DIR
			SRUN_CONTAINER SRUN_CONTAINER_ID SRUN_ERROR SRUN_EXPORT_ENV SRUN_INPUT SRUN_OUTPUT SRUN_SEGMENT_SIZE SLURMD_DEBUG`,
	} {
		known := map[string]bool{}
		for i := range slurm.Options() {
			if o := &slurm.Options()[i]; o.Tools&tool != 0 {
				for _, v := range o.VariablesOf(tool) {
					known[v] = true
				}
			}
		}
		for name := range strings.FieldsSeq(names) {
			if !strings.HasPrefix(name, "SLURM") && !strings.HasPrefix(name, "SRUN_") {
				name = map[slurm.Tool]string{b: "SBATCH_", a: "SALLOC_", r: "SLURM_"}[tool] + name
			}
			if !known[name] {
				t.Errorf("%s does not read %s", tool, name)
			}
		}
	}
}
