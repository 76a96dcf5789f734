package slurm

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
)

// The options that say what a task or a node takes, beside the plain ones.

// counted is an option that is a number of the rare part of a shape, and is kept as it was written for the job to see.
func counted(option string, least int64, field func(*core.ShapeMore) *int32) func(*Request, string) error {
	return func(r *Request, v string) error {
		n, err := r.number(option, v, least)
		*field(&r.more) = n
		r.keepOption(option, v)
		return err
	}
}

func memPerGPU(r *Request, v string) (err error) {
	r.more.MemPerGPU, err = r.memory("mem-per-gpu", v)
	r.keepOption("mem-per-gpu", v)
	return err
}

// extraNodeInfo reads -B sockets[:cores[:threads]]; a star is any.
func extraNodeInfo(r *Request, v string) error {
	fields := []*int32{&r.more.Sockets, &r.more.Cores, &r.more.Threads}
	words := strings.Split(v, ":")
	if len(words) > len(fields) {
		return r.invalid("extra-node-info")
	}
	for i, w := range words {
		if w == "*" || w == "" {
			continue
		}
		n, err := strconv.ParseUint(w, 10, 16)
		if err != nil || n == 0 {
			return r.invalid("extra-node-info")
		}
		*fields[i] = int32(n)
	}
	r.keepOption("extra-node-info", v)
	return nil
}

func oversubscribed(r *Request, _ string) error {
	r.more.OverSubscribe = true
	r.keepOption("oversubscribe", "1")
	return nil
}

// distribution reads how tasks lie on nodes, then on sockets, then on cores. A star is the default of its level.
func distribution(r *Request, v string) error {
	text, mode, moded := strings.Cut(strings.ToLower(v), ",")
	if text == "pack" || text == "nopack" {
		if moded {
			return r.invalid("distribution")
		}
		r.extra.Distribution = text
		return nil
	}
	if moded && mode != "pack" && mode != "nopack" {
		return r.invalid("distribution")
	}
	fields := strings.Split(text, ":")
	for i, f := range fields {
		word, size, sized := strings.Cut(f, "=")
		known := []string{"*", "block", "cyclic", "fcyclic"}
		if i == 0 {
			known = []string{"*", "block", "cyclic", "arbitrary", "plane"}
		}
		if n, err := strconv.ParseUint(size, 10, 31); i > 2 || !slices.Contains(known, word) ||
			sized != (word == "plane") || sized && (err != nil || n == 0) {
			return r.invalid("distribution")
		}
		if word == "*" {
			fields[i] = []string{"block", "cyclic", ""}[i]
			if i == 2 { // as the sockets
				fields[i] = fields[1]
			}
		}
	}
	r.extra.Distribution = strings.Join(fields, ":")
	if moded {
		r.extra.Distribution += "," + mode
	}
	return nil
}

// finishShape puts the parts of a request together and works out what follows from them.
func (r *Request) finishShape() error {
	s := &r.Spec.Shape
	if err := r.finishHosts(); err != nil {
		return err
	}
	if r.hint != "" {
		for _, o := range []string{
			"ntasks-per-core", "threads-per-core", "sockets-per-node", "cores-per-socket",
			"extra-node-info",
		} {
			if r.given[o] == r.given["hint"] {
				return &Complaint{Lines: []string{r.tool.String() + ": fatal: --hint and --" + o +
					" are mutually exclusive"}, Exit: ExitError}
			}
		}
	}
	r.finishGres()
	if r.tool != Srun || r.Step.Job == "" { // of a step the server judges, which knows what its job has
		if err := (gpuCheck{r}).run(); err != nil {
			return err
		}
	}
	if !reflect.ValueOf(r.more).IsZero() {
		m := r.more
		s.More = &m
	}
	if s.Given&core.GivenTasks == 0 && s.TasksPerNode == 0 && r.fixedNodes() {
		if n := int64(max(1, s.NodesMin)) * int64(max(1, r.more.Sockets)) * int64(max(1, r.more.Cores)) * int64(
			max(1, r.more.Threads)); n > int64(max(1, s.NodesMin)) {
			s.Tasks = int32(min(n, 1<<24)) // as Slurm: one for each socket, core or thread that was asked for
			s.Given |= core.GivenTasks
		}
	}
	if m := s.More; m != nil && m.TasksPerGPU == 0 &&
		len(s.Gres)+len(m.GPUs)+len(m.GPUsPerTask)+len(m.GPUsPerSocket) == 0 {
		m.CPUsPerGPU = 0 // of no GPU
		if r.tool == Srun && r.Step.Job != "" && r.given["mem-per-gpu"] == fromEnv {
			m.MemPerGPU = 0 // it was said of the job's
		}
	}
	if err := s.Derive(); err != nil {
		return badGres(r.tool, "").hint("%s", err)
	}
	if s.Tasks == 0 {
		s.Tasks = max(1, s.NodesMin) * max(1, s.TasksPerNode)
	}
	if r.more.TasksPerGPU > 0 || len(r.more.GPUsPerTask) > 0 { // they follow from what was given
		s.Given |= core.GivenTasks
	}
	return nil
}

// fixedNodes reports whether the number of nodes was given and is no range.
func (r *Request) fixedNodes() bool {
	s := &r.Spec.Shape
	return (s.Given&core.GivenNodes != 0 || r.Given("extra-node-info")) && s.NodesMax <= max(1, s.NodesMin)
}

// finishHosts takes the tasks of an arbitrary distribution from the file that SLURM_HOSTFILE names: a node for each.
// The file alone makes the distribution arbitrary.
func (r *Request) finishHosts() error {
	listed := r.given["distribution"] != fromArgs && r.given["nodelist"] != fromArgs
	if listed && r.tasks != "" && r.ReadFile != nil && r.tool == Srun {
		r.extra.Distribution = "arbitrary"
	}
	if word, _, _ := strings.Cut(strings.ToLower(r.extra.Distribution), ":"); word != "arbitrary" {
		return nil
	}
	if r.tasks != "" && r.ReadFile != nil {
		data, err := r.ReadFile(r.Path(r.tasks))
		if err != nil {
			return r.Fail(ExitError, "Unable to open file %s", r.tasks)
		}
		r.extra.NodeList = strings.Join(strings.FieldsFunc(string(data), func(c rune) bool {
			return c == ',' || c <= ' '
		}), ",")
	}
	if r.extra.NodeList == "" && r.given["distribution"] == fromEnv { // the job's, whose list srun does not have
		r.extra.Distribution = ""
		return nil
	}
	if r.extra.NodeList == "" {
		return r.Fail(ExitError, "The arbitrary distribution needs a list of nodes: SLURM_HOSTFILE or --nodelist")
	}
	names, err := hostlist.Expand(r.extra.NodeList, 1<<20)
	if err != nil {
		return r.invalid("nodelist")
	}
	s := &r.Spec.Shape
	if s.Given&core.GivenTasks == 0 || r.given["ntasks"] == fromEnv {
		s.Tasks = int32(len(names))
		s.Given |= core.GivenTasks
	} else if int(s.Tasks) < len(names) { // the first of them
		names = names[:s.Tasks]
		r.extra.NodeList = strings.Join(names, ",")
	} else if int(s.Tasks) > len(names) {
		return r.Fail(ExitError, "The arbitrary distribution has %d nodes for %d tasks", len(names), s.Tasks)
	}
	names = slices.Clone(names)
	slices.Sort(names)
	s.NodesMin = int32(len(slices.Compact(names)))
	s.NodesMax = s.NodesMin
	return nil
}

// finishGres puts the several ways to ask for generic resources where they belong.
func (r *Request) finishGres() {
	s := &r.Spec.Shape
	if r.tool == Srun && r.Step.Job != "" { // inside a job, variables say what all of it has
		for _, o := range []string{"gpus", "gpus-per-node", "gpus-per-socket"} {
			if r.given[o] == fromEnv {
				delete(r.gpu, o)
			}
		}
	}
	if len(r.gpu["gpus-per-node"]) > 0 && slices.ContainsFunc(r.gres, func(g grammar.GRES) bool {
		return g.Name == "gpu"
	}) {
		switch cmp.Compare(r.given["gres"], r.given["gpus-per-node"]) {
		case 1:
			delete(r.gpu, "gpus-per-node")
		case -1:
			r.gres = slices.DeleteFunc(slices.Clone(r.gres), func(g grammar.GRES) bool { return g.Name == "gpu" })
		default: // as Slurm: the second of the two in its own list counts
			delete(r.gpu, "gpus-per-node")
		}
	}
	s.Gres = append(gresOf(r.gres), gresOf(r.gpu["gpus-per-node"])...)
	r.more.GPUs, r.more.GPUsPerTask, r.more.GPUsPerSocket = gresOf(r.gpu["gpus"]), gresOf(r.gpu["gpus-per-task"]),
		gresOf(r.gpu["gpus-per-socket"])
	for _, list := range r.gpu {
		if len(list) > 0 {
			s.Given |= core.GivenGres
		}
	}
	if len(r.gres) > 0 || r.more.TasksPerGPU > 0 {
		s.Given |= core.GivenGres
	}
}

func gresOf(list []grammar.GRES) []core.Gres {
	var out []core.Gres
	for _, g := range list {
		if g.Count > 0 {
			out = append(out, core.Gres{Name: g.Name, Type: g.Type, Count: g.Count})
		}
	}
	return out
}
