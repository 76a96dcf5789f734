package srun

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/plain"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
)

// part is what srun runs in one component; there is one unless the job is a het job.
type part struct {
	r        *slurm.Request
	argv     []string
	group    int32 // which component
	programs []client.TaskProgram
	made     *client.StepMade
	cpus     []int32  // on each node of a job that srun made
	nodes    []string // its own of a job that is no het job; empty: any
}

// prepare reads variables and options of each part: what ":" divides, once for each component it is to run in.
func prepare(w *cmd.World, args []string) ([]*part, error) {
	var parts []*part
	for next := int32(0); ; {
		rest := []string(nil)
		more := false
		words := args
		if first, err := parse(w, args, nil, 0, false); err == nil { // ":" divides only what follows the options
			if i := slices.Index(first.argv, ":"); i >= 0 {
				cut := len(args) - len(first.argv) + i
				words, rest, more = args[:cut], args[cut+1:], true
			}
		}
		var lead *slurm.Request
		if len(parts) > 0 {
			lead = parts[0].r
		}
		divided := more || lead != nil
		p, err := parse(w, words, lead, next, divided)
		if err != nil {
			return nil, err
		}
		groups, err := p.r.HetGroups()
		if err != nil {
			return nil, err
		}
		if len(groups) == 0 {
			groups = []int32{next}
		}
		for _, g := range groups {
			if p.group != g { // its variables are others
				if p, err = parse(w, words, lead, g, divided); err != nil {
					return nil, err
				}
			}
			parts = append(parts, p)
			next = g + 1
		}
		if !more {
			return inOrder(parts), nil
		}
		args = rest
	}
}

// inOrder sorts parts by their component, as the ranks of their tasks follow it. One without a command has the last
// one's.
func inOrder(parts []*part) []*part {
	last := parts[len(parts)-1]
	for _, p := range parts {
		if len(p.argv) == 0 {
			p.argv = last.argv
			if p.r.Spec.Name == "" {
				p.r.Spec.Name = last.r.Spec.Name
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b *part) int { return cmp.Compare(a.group, b.group) })
	return parts
}

// parse reads one part. In a job, SLURM_JOB_ID names it and SLURM_JOB_NAME does not name the step; in a het job sizes
// are the component's. Divided: there are several parts, and the nodes of the job are not those of each.
func parse(w *cmd.World, args []string, lead *slurm.Request, group int32, divided bool) (*part, error) {
	r := slurm.NewRequest(slurm.Srun, w.Now(), w.Dir)
	r.ReadFile = os.ReadFile
	job, inJob := w.Lookup("SLURM_JOB_ID")
	if !inJob {
		job, inJob = w.Lookup("SLURM_JOBID")
	}
	_, inHet := w.Lookup("SLURM_HET_SIZE")
	lookup := func(name string) (string, bool) {
		ofAll := name == "SLURM_NNODES" || name == "SLURM_JOB_NUM_NODES"
		if inJob && (name == "SLURM_JOB_NAME" || divided && !inHet && ofAll) {
			return "", false
		}
		if inHet && slurm.OfComponent(name) {
			name += "_HET_GROUP_" + strconv.Itoa(int(group))
		}
		return w.Lookup(name)
	}
	if lead != nil {
		if err := r.Inherit(lead); err != nil {
			return nil, err
		}
	}
	if err := r.Environ(lookup); err != nil {
		return nil, err
	}
	argv, err := r.Args(args)
	if err != nil {
		return nil, err
	}
	if w.Dir == "" && !r.Ask.Version && !r.Ask.Help && !r.Ask.Usage {
		return nil, r.Fail(slurm.ExitError, cmd.NoDir)
	}
	if r.Step.Job == "" {
		r.Step.Job = job
	}
	if len(argv) > 0 && r.Spec.Name == "" {
		r.Spec.Name = plain.Cell(filepath.Base(argv[0]))
	}
	return &part{r: r, argv: argv, group: group}, nil
}

// finish completes what is asked for.
func (p *part) finish(w *cmd.World) error {
	warnings, err := p.r.Finish()
	if err != nil {
		return err
	}
	for _, line := range warnings {
		fmt.Fprintln(w.Err, line)
	}
	if !p.r.Step.MultiProg {
		return nil
	}
	text, err := os.ReadFile(p.r.Path(p.argv[0]))
	if err == nil {
		p.programs, err = slurm.MultiProg(p.argv[0], text, p.argv[1:])
	}
	if err != nil {
		return p.r.Fail(slurm.ExitError, "%v", err)
	}
	return nil
}

// newStep is the step as the options ask for it.
func (s *run) newStep() *client.NewStep {
	ask := s.askFor(s.parts[0])
	for _, p := range s.parts[1:] {
		ask.Het = append(ask.Het, *s.askFor(p))
	}
	if s.r.Step.Pty && ask.Tasks > 1 {
		s.w.Errorf("--pty gives a terminal to task 0 only")
	}
	return ask
}

func (s *run) askFor(p *part) *client.NewStep {
	r, sh := p.r, &p.r.Spec.Shape
	env := r.StepEnviron(s.w.Environ, cmd.ThisProcess())
	ask := &client.NewStep{
		Name: filepath.Base(p.argv[0]), Argv: p.argv, Env: env, WorkDir: r.WorkDir(), CPUsPerTask: sh.CPUsPerTask,
		Label: r.Step.Label,
		Pty:   s.r.Step.Pty, MPI: r.Step.MPI, NodeList: r.Spec.More().NodeList,
		Distribution: r.Spec.More().Distribution, Umask: lookupVar(env, "SLURM_UMASK"),
		TaskProlog: r.Step.TaskProlog, TaskEpilog: r.Step.TaskEpilog, Container: r.Step.Container,
		PreserveEnv: r.Step.PreserveEnv, OwnsJob: !s.inside, Programs: p.programs, Component: p.group,
		Host: s.w.Host, PID: int32(os.Getpid()),
	}
	more, opt := sh.Wide(), r.Spec.More().SlurmOption
	ask.Exclude, ask.Relative = r.Spec.More().Exclude, int32(r.Step.Relative)
	ask.Overlap, ask.Overcommit = r.Step.Overlap, opt("overcommit") != ""
	ask.Exact = s.inside && (r.Step.Exact || sh.Exclusive || sh.Given&core.GivenCPUsPerTask != 0 || more.CPUsPerGPU > 0)
	ask.MemPerNode, ask.MemPerCPU = sh.MemPerNode, sh.MemPerCPU
	ask.GPUsPerTask, ask.TasksPerGPU, ask.GPUBind, ask.CPUBind = more.GPUsPerTask, more.TasksPerGPU, opt("gpu-bind"),
		opt("cpu-bind")
	ask.GPUFreq = opt("gpu-freq")
	if len(r.Step.GPUsPerTask) > 0 {
		ask.GPUsPerTask = r.Step.GPUsPerTask
	}
	if r.Typed("gres") || r.Typed("gpus-per-node") { // variables tell what the whole job has
		ask.Gres = sh.Gres
	}
	if r.Typed("gpus") {
		ask.GPUs = more.GPUs
	}
	ask.NoGres = s.inside && len(ask.Gres)+len(ask.GPUs)+len(ask.GPUsPerTask) == 0 &&
		slices.ContainsFunc([]string{"gres", "gpus", "gpus-per-node", "gpus-per-task"}, r.Typed)
	ask.Tasks, ask.TasksPerNode = r.Step.Tasks(sh)
	// of whole nodes, tasks of so many CPUs fill them
	if !s.inside && sh.Exclusive && sh.Given&core.GivenCPUsPerTask != 0 && ask.Tasks == 0 && ask.TasksPerNode == 0 {
		for _, n := range p.cpus {
			ask.Tasks += n / max(1, sh.CPUsPerTask)
		}
	}
	// of a range it has what the job was given
	if sh.Given&core.GivenNodes != 0 && (s.inside || sh.NodesMax <= sh.NodesMin) {
		ask.Nodes = sh.NodesMin
	}
	if s.inside && r.Spec.TimeLimit > 0 && r.Spec.TimeLimit < core.Forever {
		ask.TimeLimit = r.Spec.TimeLimit
	}
	p.confine(ask)
	return ask
}

// lookupVar finds a variable.
func lookupVar(env []string, name string) string {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}
