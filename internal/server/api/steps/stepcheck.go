package steps

import (
	"math"
	"net/http"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/jsontext"
	"bireme.dev/bireme/internal/server/api/call"
	"bireme.dev/bireme/internal/server/api/jobs"

	plaintext "bireme.dev/bireme/internal/core/plain"
)

// Bounds of what a step may ask for. TestEveryStepFieldIsClassified fails for a field that checkStep does not know.
const (
	maxStepName     = 1024
	maxStepPath     = 4096
	maxStepText     = 32 << 10
	maxStepArgs     = 2 << 20 // bytes of all arguments
	maxStepPrograms = 256     // as Slurm's --multi-prog
	maxStepSpans    = 4096    // ranges of ranks of all programs
	maxStepMemory   = 1 << 50
	maxStepTime     = 60 << 31
)

// stepTexts and stepNumbers are the bounds of a step's fields, by name.
var (
	stepTexts = []struct {
		name string
		most int
		get  func(*client.NewStep) string
	}{
		{"name", maxStepName, func(s *client.NewStep) string { return s.Name }},
		{"workdir", maxStepPath, func(s *client.NewStep) string { return s.WorkDir }},
		{"nodelist", maxStepText, func(s *client.NewStep) string { return s.NodeList }},
		{"exclude", maxStepText, func(s *client.NewStep) string { return s.Exclude }},
		{"distribution", maxStepName, func(s *client.NewStep) string { return s.Distribution }},
		{"stdin", maxStepPath, func(s *client.NewStep) string { return s.Stdin }},
		{"stdout", maxStepPath, func(s *client.NewStep) string { return s.Stdout }},
		{"stderr", maxStepPath, func(s *client.NewStep) string { return s.Stderr }},
		{"host", maxStepName, func(s *client.NewStep) string { return s.Host }},
		{"umask", maxStepName, func(s *client.NewStep) string { return s.Umask }},
		{"mpi", maxStepName, func(s *client.NewStep) string { return s.MPI }},
		{"gpu_bind", maxStepText, func(s *client.NewStep) string { return s.GPUBind }},
		{"gpu_freq", maxStepText, func(s *client.NewStep) string { return s.GPUFreq }},
		{"cpu_bind", maxStepText, func(s *client.NewStep) string { return s.CPUBind }},
		{"task_prolog", maxStepPath, func(s *client.NewStep) string { return s.TaskProlog }},
		{"task_epilog", maxStepPath, func(s *client.NewStep) string { return s.TaskEpilog }},
	}
	stepNumbers = []struct {
		name string
		most int64
		get  func(*client.NewStep) int64
	}{
		{"nodes", 1 << 20, func(s *client.NewStep) int64 { return int64(s.Nodes) }},
		{"tasks", math.MaxInt32, func(s *client.NewStep) int64 { return int64(s.Tasks) }},
		{"tasks_per_node", math.MaxInt32, func(s *client.NewStep) int64 { return int64(s.TasksPerNode) }},
		{"cpus_per_task", 1 << 24, func(s *client.NewStep) int64 { return int64(s.CPUsPerTask) }},
		{"tasks_per_gpu", 1 << 16, func(s *client.NewStep) int64 { return int64(s.TasksPerGPU) }},
		{"component", jobs.MaxStepParts, func(s *client.NewStep) int64 { return int64(s.Component) }},
		{"relative", 1 << 20, func(s *client.NewStep) int64 { return int64(s.Relative) }},
		{"pid", math.MaxInt32, func(s *client.NewStep) int64 { return int64(s.PID) }},
		{"mem_per_node", maxStepMemory, func(s *client.NewStep) int64 { return int64(s.MemPerNode) }},
		{"mem_per_cpu", maxStepMemory, func(s *client.NewStep) int64 { return int64(s.MemPerCPU) }},
	}
	stepGres = []struct {
		name string
		get  func(*client.NewStep) []core.Gres
	}{
		{"gres", func(s *client.NewStep) []core.Gres { return s.Gres }},
		{"gpus", func(s *client.NewStep) []core.Gres { return s.GPUs }},
		{"gpus_per_task", func(s *client.NewStep) []core.Gres { return s.GPUsPerTask }},
	}
)

// readStep reads the body of a call that makes a step.
func readStep(r *http.Request) (*client.NewStep, error) {
	body, err := call.ReadBody(r, call.MaxBody)
	if err != nil {
		return nil, err
	}
	defer call.PutBody(body)
	if err := call.CheckValues(body.Bytes()); err != nil {
		return nil, err
	}
	if jsontext.HasNUL(body.Bytes()) {
		return nil, call.ErrNUL()
	}
	ask := &client.NewStep{}
	return ask, call.Unmarshal(body.Bytes(), ask)
}

func badStep(name, format string, args ...any) error {
	e := core.Errorf(core.Invalid, format, args...)
	e.Message = "step " + name + ": " + e.Message
	return e.Because("invalid_shape")
}

// checkStep refuses what no step may ask for, before anything is computed from it.
func checkStep(ask *client.NewStep) error {
	ask.Host = plaintext.Cell(ask.Host)
	ask.Name = plaintext.Cell(ask.Name) // it is a program's name unless somebody says another: it is mended, not refused
	for i := range stepTexts {
		if f := &stepTexts[i]; len(f.get(ask)) > f.most {
			return badStep(f.name, "%d bytes; the limit is %d", len(f.get(ask)), f.most)
		}
	}
	for i := range stepNumbers {
		if f := &stepNumbers[i]; f.get(ask) < 0 || f.get(ask) > f.most {
			return badStep(f.name, "%d is not between 0 and %d", f.get(ask), f.most)
		}
	}
	if t := ask.TimeLimit; t < 0 || t > maxStepTime && t != core.Forever {
		return badStep("time_limit", "%d is not between 0 and %d seconds", t, int64(maxStepTime))
	}
	if float64(ask.MemPerCPU)*float64(max(1, ask.CPUsPerTask)) > maxStepMemory {
		return badStep("mem_per_cpu", "%d bytes on each of %d CPUs are more than a node has", ask.MemPerCPU, ask.CPUsPerTask)
	}
	for i := range stepGres {
		list := stepGres[i].get(ask)
		if len(list) > 64 {
			return badStep(stepGres[i].name, "%d entries; the limit is 64", len(list))
		}
		for _, g := range list {
			if len(g.Name) > 256 || len(g.Type) > 256 || g.Count < 0 || g.Count > 1<<20 {
				return core.Errorf(core.Invalid, "the step asks for %d of %.80q", g.Count, g.Name).Because("invalid_gres")
			}
		}
	}
	if d := ask.Direct; d != nil && (len(d.Addrs) > 64 || textSize(d.Addrs) > maxStepText || len(d.Print) > maxStepName ||
		len(d.Secret) > maxStepName) {
		return badStep("direct", "at most 64 addresses and %d bytes", maxStepText)
	}
	return checkPrograms(ask)
}

// checkPrograms bounds what the tasks of a step run.
func checkPrograms(ask *client.NewStep) error {
	size, spans := textSize(ask.Argv), 0
	for i := range ask.Programs {
		p := &ask.Programs[i]
		size += textSize(p.Argv)
		spans += len(p.Ranks)
		for _, s := range p.Ranks {
			if s.First < 0 || s.Last < s.First { // up to the largest number: all others
				return badStep("programs", "there are no ranks %d to %d", s.First, s.Last)
			}
		}
	}
	switch {
	case len(ask.Programs) > maxStepPrograms:
		return badStep("programs", "%d entries; the limit is %d", len(ask.Programs), maxStepPrograms)
	case spans > maxStepSpans:
		return badStep("programs", "%d ranges of ranks; the limit is %d", spans, maxStepSpans)
	// each task of several programs gets its own copy
	case size > maxStepArgs || len(ask.Programs) > 0 && size > maxStepArgs/8:
		return badStep("argv", "%d bytes of arguments are too many", size)
	}
	return nil
}

func textSize(list []string) (n int) {
	for _, s := range list {
		n += len(s) + 1
	}
	return n
}
