package slurm

import (
	"errors"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/mailto"
)

// The meanings of the options in the table: each takes a value as it was typed.

func ignored(*Request, string) error { return nil }

// keep stores the value with the job, where it is shown but has no effect of its own.
func keep(option string) func(*Request, string) error {
	return func(r *Request, v string) error { r.keepOption(option, v); return nil }
}

func keepFlag(option string) func(*Request, string) error {
	return func(r *Request, _ string) error { r.keepOption(option, "1"); return nil }
}

// noKill reads --no-kill: alone, or with what takes back what a variable or the script said.
func noKill(r *Request, v string) error {
	on := v != "no" && v != "off"
	r.extra.Keep().NoKill = &on
	return nil
}

// killInvalid reads --kill-on-invalid-dep.
func killInvalid(r *Request, v string) error {
	on := strings.EqualFold(v, "yes")
	if !on && !strings.EqualFold(v, "no") {
		return r.invalidHint("kill-on-invalid-dep", "yes or no")
	}
	r.extra.Keep().KillInvalid = &on
	return nil
}

// refuse is for options that would change what the job means: it is better not to run than to run something else. hint
// says what does instead.
func refuse(option, hint string) func(*Request, string) error {
	return func(r *Request, _ string) error {
		return r.Fail(ExitError, "--%s is not supported", option).hint("%s", hint)
	}
}

func project(r *Request, v string) error   { r.Spec.Project = core.ProjectName(v); return nil }
func partition(r *Request, v string) error { r.Spec.Partition = core.ParsePartitions(v); return nil }
func qos(r *Request, v string) error       { r.Spec.QOS = core.QOSName(v); return nil }
func comment(r *Request, v string) error   { r.extra.Comment = v; return nil }
func export(r *Request, v string) error    { r.export = v; return nil }
func jobName(r *Request, v string) error   { r.Spec.Name = v; return nil }
func jobID(r *Request, v string) error     { r.Step.Job = v; return nil }
func mpi(r *Request, v string) error       { r.Step.MPI = v; return nil }

// dependency keeps what does not parse: the server refuses it in its own words.
func dependency(r *Request, v string) error {
	r.extra.Dependency, _ = core.ParseDependency(v)
	return nil
}

var (
	stdinFile  = stream(func(io *core.IO) *string { return &io.Stdin })
	stdoutFile = stream(func(io *core.IO) *string { return &io.Stdout })
	stderrFile = stream(func(io *core.IO) *string { return &io.Stderr })
)

// stream is an option that names a file. "none" is no file: srun looks for the word itself, sbatch means /dev/null.
func stream(field func(*core.IO) *string) func(*Request, string) error {
	return func(r *Request, v string) error {
		if v == "none" && r.tool == Sbatch {
			v = "/dev/null"
		}
		*field(&r.Spec.IO) = v
		return nil
	}
}

func array(r *Request, v string) error {
	a, err := grammar.ParseArray(v)
	if err != nil {
		return r.Fail(ExitError, "Batch job submission failed: Invalid job array specification").hint("%v", err)
	}
	r.Spec.Array, _, _ = strings.Cut(v, "%")
	r.Spec.Throttle = int32(a.Throttle)
	return nil
}

func begin(r *Request, v string) (err error) { r.Spec.Begin, err = r.moment("begin", v); return err }

func deadline(r *Request, v string) (err error) {
	r.extra.Deadline, err = r.moment("deadline", v)
	r.extra.LateAccepted = true
	return err
}

func chdir(r *Request, v string) error { r.Spec.IO.WorkDir = r.Path(v); return nil }

// number reads a count of at least least, with Slurm's words when it is not one.
func (r *Request) number(option, v string, least int64) (int32, error) {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < least {
		return 0, r.Fail(ExitError, "Invalid numeric value %q for --%s.", v, option)
	}
	return int32(n), nil
}

func tasks(r *Request, v string) (err error) {
	r.Spec.Shape.Tasks, err = r.number("ntasks", v, 1)
	r.Spec.Shape.Given |= core.GivenTasks
	return err
}

func tasksPerNode(r *Request, v string) (err error) {
	r.Spec.Shape.TasksPerNode, err = r.number("ntasks-per-node", v, 0)
	r.Spec.Shape.Given |= core.GivenTasksPerNode
	return err
}

func cpusPerTask(r *Request, v string) (err error) {
	r.Spec.Shape.CPUsPerTask, err = r.number("cpus-per-task", v, 1)
	r.Spec.Shape.Given |= core.GivenCPUsPerTask
	return err
}

func minCPUs(r *Request, v string) (err error) {
	r.Spec.Shape.MinCPUs, err = r.number("mincpus", v, 1)
	return err
}

func nodes(r *Request, v string) error {
	c, err := grammar.ParseNodeCount(v)
	if err != nil {
		var ge *grammar.Error
		if errors.As(err, &ge) {
			return r.Fail(ExitUsage, "%s", ge.Msg)
		}
		return r.invalid("nodes")
	}
	r.Spec.Shape.NodesMin, r.Spec.Shape.NodesMax = int32(c.Min), int32(c.Max)
	r.Spec.Shape.Given |= core.GivenNodes
	return nil
}

func timeLimit(r *Request, v string) (err error) {
	r.Spec.TimeLimit, err = r.limit("time", v)
	r.Spec.Shape.Given |= core.GivenTimeLimit
	return err
}

func timeMin(r *Request, v string) (err error) {
	r.extra.TimeMin, err = r.limit("time-min", v)
	return err
}

func (r *Request) limit(option, v string) (core.Seconds, error) {
	m, err := grammar.ParseTimeLimit(v)
	switch {
	case err != nil:
		return 0, r.invalid(option)
	case m == grammar.Unlimited:
		return core.Forever, nil
	}
	return core.Seconds(m * 60), nil
}

func (r *Request) memory(option, v string) (core.Bytes, error) {
	mib, err := grammar.ParseMemory(v)
	if err != nil {
		return 0, r.invalid(option)
	}
	return core.Bytes(mib) * core.MiB, nil
}

// mem: 0 stays 0 with GivenMemPerNode set, which means all memory of each node.
func mem(r *Request, v string) (err error) {
	r.Spec.Shape.MemPerNode, err = r.memory("mem", v)
	r.Spec.Shape.Given |= core.GivenMemPerNode
	return err
}

func memPerCPU(r *Request, v string) (err error) {
	r.Spec.Shape.MemPerCPU, err = r.memory("mem-per-cpu", v)
	r.Spec.Shape.Given |= core.GivenMemPerCPU
	return err
}

func tmpDisk(r *Request, v string) (err error) { r.extra.TmpDisk, err = r.memory("tmp", v); return err }

// gresHelp is what --gres=help says.
const gresHelp = `Generic resources of each node: NAME[:TYPE][:COUNT], several with commas between.
    gpu            one GPU of any type
    gpu:2          two of them
    gpu:a100:2     two of type a100
    none           none, whatever else is asked for
sinfo -N -o "%N %G" shows what the nodes have.
`

func gres(r *Request, v string) error {
	if v == "help" {
		r.Ask.Explain = gresHelp
		return nil
	}
	list, err := grammar.ParseGRES(v)
	if err != nil {
		return r.Fail(ExitError, "Invalid generic resource (gres) specification")
	}
	r.gres = list
	return nil
}

func gpus(option string) func(*Request, string) error {
	return func(r *Request, v string) error {
		list, err := grammar.ParseGPUs(v)
		if err != nil {
			return r.invalid(option)
		}
		r.gpu[option] = list
		r.keepOption(option, v)
		return nil
	}
}

// tresPerTask reads cpu=4,gres/gpu:a100=2; what it does not name stays as it is.
func tresPerTask(r *Request, v string) error {
	for _, item := range strings.Split(v, ",") {
		name, count, ok := strings.Cut(item, "=")
		if !ok {
			i := strings.LastIndexByte(item, ':')
			if i < 0 {
				return r.invalid("tres-per-task")
			}
			name, count = item[:i], item[i+1:]
		}
		switch kind, rest, _ := strings.Cut(name, "/"); {
		case kind == "cpu":
			if err := cpusPerTask(r, count); err != nil {
				return err
			}
			r.given["cpus-per-task"] = r.level
		case kind == "gres" && (rest == "gpu" || strings.HasPrefix(rest, "gpu:")):
			text := strings.TrimPrefix(strings.TrimPrefix(rest, "gpu"), ":")
			if text != "" {
				text += ":"
			}
			if err := gpus("gpus-per-task")(r, text+count); err != nil {
				return err
			}
			r.given["gpus-per-task"] = r.level
		default:
			return r.Fail(ExitError, "--tres-per-task=%s is not supported", item)
		}
	}
	r.keepOption("tres-per-task", v)
	return nil
}

// MailTypes reads a list of what mail is sent about.
func MailTypes(text string) (string, bool) {
	text = strings.ToUpper(text)
	return text, mailto.Check(text, "") == nil && text != ""
}

// addMail joins two lists of what mail is sent about, as several --mail-type do. NONE adds nothing.
func addMail(have, more string) string {
	var words []string
	for w := range strings.SplitSeq(have+","+more, ",") {
		if w != "" && w != "NONE" && !contains(words, w) {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "NONE"
	}
	return strings.Join(words, ",")
}

func mailType(r *Request, v string) error {
	list, ok := MailTypes(v)
	if !ok {
		return r.invalid("mail-type")
	}
	r.extra.MailTypes = addMail(r.extra.MailTypes, list)
	return nil
}

func contains(list []string, w string) bool {
	for _, x := range list {
		if x == w {
			return true
		}
	}
	return false
}

// hintHelp is what --hint=help says.
const hintHelp = `What a program is like:
    compute_bound     it uses all cores of a socket
    memory_bound      it needs the memory of a socket
    multithread       it uses all threads of a core
    nomultithread     it uses one thread of each core
`

func hint(r *Request, v string) error {
	if v == "help" {
		r.Ask.Explain = hintHelp
		return nil
	}
	if !contains([]string{"compute_bound", "memory_bound", "multithread", "nomultithread"}, v) {
		return r.Fail(ExitError, "unrecognized --hint argument %q, see --hint=help", v)
	}
	r.hint = v
	r.more.OneThread = v == "nomultithread"
	r.keepOption("hint", v)
	return nil
}

func exclusive(r *Request, v string) error {
	switch v {
	case "", "1", "yes", "allocation": // the numbers come from variables
		r.Spec.Shape.Exclusive = true
		r.Spec.Shape.Given |= core.GivenExclusive
	case "user":
		r.wide().ExclusiveUser = true
	case "mcs", "topo":
		return r.Fail(ExitError, "--exclusive=%s is not supported", v).hint(
			"--exclusive takes whole nodes, --exclusive=user nodes that only the user's jobs share")
	default:
		return r.invalid("exclusive")
	}
	return nil
}

func (r *Request) hosts(option, v string) (string, error) {
	if !strings.Contains(v, "/") {
		return v, nil
	}
	if r.ReadFile == nil {
		return "", r.invalid(option)
	}
	data, err := r.ReadFile(r.Path(v))
	if err != nil {
		return "", r.Fail(ExitError, "Unable to open file %s", v)
	}
	return strings.Join(strings.Fields(string(data)), ","), nil
}

func nodeList(r *Request, v string) (err error) {
	r.extra.NodeList, err = r.hosts("nodelist", v)
	return err
}

func exclude(r *Request, v string) (err error) {
	r.extra.Exclude, err = r.hosts("exclude", v)
	return err
}

func nodeFile(r *Request, v string) (err error) {
	r.extra.NodeList, err = r.hosts("nodefile", "."+string(filepath.Separator)+v)
	if filepath.IsAbs(v) {
		r.extra.NodeList, err = r.hosts("nodefile", v)
	}
	return err
}

// nice: no value is 100, and what is no number is 0, as Slurm 22.05.
func nice(r *Request, v string) error {
	if v == "" {
		r.Spec.Nice = 100
		return nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil && errors.Is(err, strconv.ErrRange) || n > 2147483645 || n < -2147483645 {
		return r.Fail(ExitUsage, "Invalid --nice specification")
	}
	r.Spec.Nice = int32(n)
	return nil
}

func openMode(r *Request, v string) error {
	switch strings.ToLower(v) {
	case "a", "append":
		r.Spec.IO.Append = true
	case "t", "truncate":
		r.Spec.IO.Append = false
		r.keepOption("open-mode", "t")
	default:
		return r.invalid("open-mode")
	}
	return nil
}

func priority(r *Request, v string) error {
	n := uint64(1<<32 - 2)
	if !strings.EqualFold(v, "TOP") {
		var err error
		if n, err = strconv.ParseUint(v, 10, 32); err != nil {
			return r.invalid("priority")
		}
	}
	p := uint32(n)
	r.extra.Priority = &p
	return nil
}

func propagate(r *Request, v string) error {
	if v == "" {
		v = "ALL"
	}
	for given := range strings.SplitSeq(v, ",") {
		w := strings.TrimPrefix(strings.ToUpper(given), "RLIMIT_")
		if w != "ALL" && w != "NONE" && !contains(RlimitNames, w) {
			c := r.Fail(ExitError, "--propagate=%s is not valid.", v)
			c.Lines = append([]string{r.tool.String() + ": error: Bad rlimit name: " + given}, c.Lines...)
			return c
		}
	}
	r.limits = passed(strings.ToUpper(v))
	return nil
}

func requeue(on bool) func(*Request, string) error {
	return func(r *Request, _ string) error { r.Spec.Requeue = on; return nil }
}

func signal(r *Request, v string) error {
	s, err := grammar.ParseSignalSpec(v)
	if err != nil {
		return r.invalid("signal")
	}
	r.extra.Signal = &core.WarnSignal{
		Signal: int32(s.Signal), Before: core.Seconds(s.Seconds), Batch: s.Batch,
		Reserve: s.Reservation,
	}
	return nil
}

// isZero reports whether nothing rare is asked for, so that the job can do without an Extra.
func isZero(e *core.Extra) bool { return reflect.ValueOf(*e).IsZero() }
