package slurm

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// Request is what a command line, its variables and its script ask for. Make it with NewRequest, feed it in the order
// Script, Environ, Args (later beats earlier), then call Finish.
type Request struct {
	Spec core.Spec
	Ask  Ask
	Step StepWish
	// Defined are all options that were given.
	Defined Defined

	// ReadFile opens files that options name (--nodelist=./hosts); nil: there are none.
	ReadFile func(path string) ([]byte, error)

	tool   Tool
	now    time.Time
	dir    string
	extra  core.Extra
	export string // literal --export, "" if it was not given
	limits passed // literal --propagate
	level  level
	given  map[string]level // at which level an option was last given
	gpu    map[string][]grammar.GRES
	gres   []grammar.GRES
	more   core.ShapeMore
	hint   string
	tasks  string // SLURM_HOSTFILE: the node of each task

	wait4switch string // from a variable: how long to wait for --switches
}

// Ask is what the command itself should do.
type Ask struct {
	Parsable, Wait, TestOnly, Quiet bool
	Help, Usage, Version            bool
	Explain                         string // the text that =help asked for: nothing else is done
	Verbose                         int
	IgnorePBS                       bool     // #PBS and #BSUB lines are not read
	ScriptFile                      string   // --bbf: what it holds follows the first line of the script
	Clusters                        []string // any of them will do; empty: whichever answers
	Wrap                            *string
	Immediate                       *time.Duration // give up when it has not started by then
}

// StepWish is what only srun asks for.
type StepWish struct {
	Job                                      string // --jobid, or the job it runs in
	Label, Unbuffered, Pty, Exact, Overlap   bool
	NoStatus, QuitOnInterrupt, KillOnBadExit bool
	KillGiven, PreserveEnv                   bool
	Bell, NoShell, KillCommand               bool          // of salloc
	KillSignal                               int           // of salloc --kill-command
	Wait                                     time.Duration // after the first task ended
	Relative                                 int
	HetGroup                                 string // --het-group as it was given
	MultiProg                                bool   // the program is a file that says what each task runs
	MPI                                      string
	X11                                      string // whose windows are shown: all, first, last, batch; empty: nobody's
	// copy the program there first; "": into the folder the step runs in; nil: do not
	Bcast                                         *string
	Prolog, Epilog                                string // programs run before and after the step, where srun is
	TaskProlog, TaskEpilog                        string // and before and after each task, where that is
	Container                                     *core.Container
	Stdin, Stdout, Stderr, NodeList, Distribution string

	GPUsPerTask         []core.Gres // of --overcommit, where the shape has those of all tasks
	tasks, tasksPerNode int32       // of --overcommit, where the shape has fewer
}

// level is where an option was given; a higher one wins over its rivals of lower ones.
type level uint8

const (
	fromNowhere level = iota
	fromScript
	fromEnv
	fromArgs
)

// NewRequest starts a request of a tool, made now in directory dir.
func NewRequest(t Tool, now time.Time, dir string) *Request {
	return &Request{tool: t, now: now, dir: dir, given: map[string]level{}, gpu: map[string][]grammar.GRES{}}
}

// Fail makes the complaint "TOOL: error: …" with an exit code.
func (r *Request) Fail(exit int, format string, args ...any) *Complaint {
	return &Complaint{Lines: []string{r.tool.String() + ": error: " + fmt.Sprintf(format, args...)}, Exit: exit}
}

// Args reads the command line and returns what follows the options.
func (r *Request) Args(args []string) ([]string, error) {
	r.level = fromArgs
	return r.parse(args)
}

// Environ reads the tool's input variables.
func (r *Request) Environ(lookup func(string) (string, bool)) error {
	r.level = fromEnv
	r.tasks, _ = lookup("SLURM_HOSTFILE")
	r.wait4switch, _ = lookup(r.prefix() + "WAIT4SWITCH")
	table := options()
	for i := range table {
		o := &table[i]
		if o.Tools&r.tool == 0 {
			continue
		}
		for _, name := range o.variables(r.tool) {
			value, ok := lookup(name)
			if !ok {
				continue
			}
			if o.Arg == getopt.NoArg && !FlagOn(value) {
				break
			}
			if err := r.apply(o, value); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// prefix begins the names of the tool's variables.
func (r *Request) prefix() string {
	if r.tool == Srun {
		return "SLURM_"
	}
	return strings.ToUpper(r.tool.String()) + "_"
}

func (r *Request) parse(args []string) ([]string, error) {
	values, operands, err := parserFor(r.tool).Parse(args)
	for _, v := range values {
		if err := r.apply(optionOf(r.tool, v.Key), v.Value); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, &Complaint{Lines: []string{
			r.tool.String() + ": " + err.Error(),
			fmt.Sprintf("Try \"%s --help\" for more information", r.tool),
		}, Hint: nearOption(r.tool, err), Exit: ExitUsage}
	}
	return operands, nil
}

func (r *Request) apply(o *Option, value string) error {
	if err := o.set(r, value); err != nil {
		return err
	}
	r.given[o.Long] = r.level
	r.Defined = append(r.Defined, told{o, value})
	return nil
}

// rivals finds which of several options that exclude each other is in force: the one given at the highest level. Two at
// the same level are an error.
func (r *Request) rivals(text string, names ...string) (string, error) {
	best, count := "", 0
	for _, n := range names {
		switch l := r.given[n]; {
		case l == fromNowhere:
		case best == "" || l > r.given[best]:
			best, count = n, 1
		case l == r.given[best]:
			count++
		}
	}
	if count > 1 {
		return "", &Complaint{Lines: []string{r.tool.String() + ": fatal: " + text}, Exit: ExitError}
	}
	return best, nil
}

// maxNodes is more than a cluster has.
const maxNodes = 1 << 20

// Finish completes the spec and gives warnings to print. The defaults are those of Slurm: one task, one CPU each, as
// many nodes as that needs; ntasks-per-node times nodes when only these are given.
func (r *Request) Finish() (warnings []string, err error) {
	if err := r.finishContainer(); err != nil {
		return nil, err
	}
	if err := r.finishMemory(); err != nil {
		return nil, err
	}
	if err := r.finishShape(); err != nil {
		return nil, err
	}
	if d := r.extra.Deadline; d != 0 && r.Spec.Begin > d {
		return nil, r.Fail(ExitError, "Incompatible begin and deadline time specification")
	}
	s := &r.Spec.Shape
	if s.NodesMin > maxNodes {
		return nil, r.Fail(ExitError, "%s: More processors requested than permitted", map[Tool]string{
			Sbatch: "Batch job submission failed", Salloc: "Job submit/allocate failed",
			Srun: "Unable to allocate resources",
		}[r.tool])
	}
	if s.Given&core.GivenTasks != 0 && s.Given&core.GivenNodes != 0 && s.Tasks < s.NodesMin {
		warnings = append(warnings, fmt.Sprintf("%s: Warning: can't run %d processes on %d nodes, setting nnodes to %d",
			r.tool, s.Tasks, s.NodesMin, s.Tasks))
		s.NodesMin, s.NodesMax = s.Tasks, s.Tasks
	}
	s.CPUsPerTask = max(1, s.CPUsPerTask)
	r.finishOvercommit()
	r.finishSwitches()
	r.settleExtra()
	if r.Spec.IO.WorkDir == "" {
		r.Spec.IO.WorkDir = r.dir
	}
	if r.given["requeue"] == fromNowhere && r.given["no-requeue"] == fromNowhere {
		r.Spec.Requeue = true // as Slurm's JobRequeue=1
	}
	return warnings, nil
}

// settleExtra gives the spec an Extra only if something rare is asked for: a pending job should stay small.
func (r *Request) settleExtra() {
	if !isZero(&r.extra) {
		e := r.extra
		r.Spec.Extra = &e
	}
}

func (r *Request) finishMemory() error {
	which, err := r.rivals("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", "mem", "mem-per-cpu",
		"mem-per-gpu")
	if err != nil {
		return err
	}
	s := &r.Spec.Shape
	if which != "mem" {
		s.MemPerNode = 0
		s.Given &^= core.GivenMemPerNode
	}
	if which != "mem-per-cpu" {
		s.MemPerCPU = 0
		s.Given &^= core.GivenMemPerCPU
	}
	if which != "mem-per-gpu" {
		r.more.MemPerGPU = 0
	}
	if which, err = r.rivals("", "cpus-per-gpu", "cpus-per-task"); err != nil {
		return badGres(r.tool, "--cpus-per-gpu is mutually exclusive with --cpus-per-task")
	}
	if which != "cpus-per-gpu" {
		r.more.CPUsPerGPU = 0
	} else if which != "cpus-per-task" {
		s.CPUsPerTask = 0
		s.Given &^= core.GivenCPUsPerTask
	}
	return nil
}

// Path makes a path of the request absolute, against its working directory.
func (r *Request) Path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(r.dir, p)
}

// WorkDir is --chdir, or where the command was given.
func (r *Request) WorkDir() string {
	if r.Spec.IO.WorkDir != "" {
		return r.Spec.IO.WorkDir
	}
	return r.dir
}

// Given reports whether an option was given anywhere.
func (r *Request) Given(long string) bool { return r.given[long] != fromNowhere }

// Typed reports whether an option was given on the command line.
func (r *Request) Typed(long string) bool { return r.given[long] == fromArgs }

// invalid is the complaint about a value that does not fit, with what would, where values tells.
func (r *Request) invalid(option string) *Complaint {
	return r.Fail(ExitUsage, "Invalid --%s specification", option).hint("%s", values()[option])
}

// invalidHint is invalid with another hint.
func (r *Request) invalidHint(option, want string) *Complaint {
	return r.Fail(ExitUsage, "Invalid --%s specification", option).hint("--%s takes %s", option, want)
}

// dayMoment reads a moment, also a time of day on a day that is named after it: noon-tomorrow.
func dayMoment(text string, now time.Time) (time.Time, error) {
	for day, word := range []string{"-today", "-tomorrow"} {
		if clock, ok := strings.CutSuffix(strings.ToLower(text), word); ok {
			midnight := time.Date(now.Year(), now.Month(), now.Day()+day, 0, 0, 0, 0, now.Location())
			if t, err := grammar.ParseMoment(clock, midnight, grammar.Recent); err == nil {
				return t, nil
			}
		}
	}
	return grammar.ParseMoment(text, now, grammar.Upcoming)
}

// moment reads a time; Slurm prints the parser's complaint first, without the command's name.
func (r *Request) moment(option, text string) (core.Time, error) {
	t, err := dayMoment(text, r.now)
	if err != nil {
		c := r.invalid(option)
		var ge *grammar.Error
		if errors.As(err, &ge) {
			c.Lines = append([]string{fmt.Sprintf("Invalid time specification (pos=%d): %s", ge.Pos, text)}, c.Lines...)
		}
		return 0, c
	}
	return core.At(t), nil
}
