package slurm

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm/cpubind"
)

// gpuBinding is --gpu-bind: which of a job's GPUs on a node its tasks see.
type gpuBinding struct {
	per    int   // so many each, one after the other (per_task)
	shared int   // so many tasks share one (single)
	list   []int // the k-th task has the k-th of these (map_gpu), round and round
	masks  []uint64

	verbose bool // each task says what it sees
	none    bool // nothing is bound
}

// parseGPUBind reads [verbose,]none|closest|single:N|per_task:N|map_gpu:LIST|mask_gpu:LIST.
func parseGPUBind(text string) (b gpuBinding, ok bool) {
	text, b.verbose = strings.CutPrefix(text, "verbose,")
	kind, value, _ := strings.Cut(text, ":")
	number := func() (int, bool) {
		n, err := strconv.Atoi(value)
		return n, err == nil && n > 0
	}
	switch kind {
	case "none", "closest": // tasks are bound to no CPUs that one GPU would be closer to
		b.none = kind == "none"
		return b, value == ""
	case "single":
		if value == "" {
			value = "1"
		}
		b.shared, ok = number()
		return b, ok
	case "per_task":
		b.per, ok = number()
		return b, ok
	case "map_gpu", "mask_gpu":
		for item := range strings.SplitSeq(value, ",") {
			item, times, repeated := strings.Cut(item, "*")
			count := 1
			if repeated {
				n, err := strconv.Atoi(times)
				if err != nil || n < 1 || n > 1<<16 {
					return b, false
				}
				count = n
			}
			n, err := strconv.ParseUint(item, 0, 64)
			if err != nil || kind == "map_gpu" && n > 1<<16 {
				return b, false
			}
			for range count {
				if kind == "map_gpu" {
					b.list = append(b.list, int(n))
				} else {
					b.masks = append(b.masks, n)
				}
			}
		}
		return b, true
	}
	return b, false
}

// pick chooses what the local-th task on a node sees of the job's GPUs there. Numbers count within the job's own, as in
// Slurm; what asks for more than there is sees them all.
func (b gpuBinding) pick(units []int32, local int) []int32 {
	part := func(at, n int) []int32 {
		if n > 0 && at+n <= len(units) {
			return units[at : at+n]
		}
		return units
	}
	switch {
	case b.per > 0:
		return part(local*b.per, b.per)
	case b.shared > 0:
		return part(local/b.shared%max(1, len(units)), 1)
	case len(b.list) > 0:
		return part(b.list[local%len(b.list)], 1)
	case len(b.masks) > 0:
		var out []int32
		for i, u := range units {
			if i < 64 && b.masks[local%len(b.masks)]&(1<<i) != 0 {
				out = append(out, u)
			}
		}
		return out
	}
	return units
}

// taskUnits are the GPUs one task sees: as --gpu-bind says, else those that were asked for each task, or the one that
// several share; else all that the job has on the node.
func taskUnits(s *core.Spec, n *core.NodeAlloc, local int) []int32 {
	return gpuBindingOf(s).pick(allUnits(n), local)
}

func gpuBindingOf(s *core.Spec) (b gpuBinding) {
	m := s.Shape.Wide()
	switch bind := s.More().SlurmOption("gpu-bind"); {
	case bind != "":
		b, _ = parseGPUBind(bind)
	case len(m.GPUsPerTask) > 0:
		b.per = int(core.CountGres(m.GPUsPerTask, "gpu"))
	case m.TasksPerGPU > 0:
		b.shared = int(m.TasksPerGPU)
	}
	return b
}

// GPUNotes are the lines about GPUs that a task begins its error output with: whether their frequency could be set, on
// the first task of its node, and with a verbose binding which it sees of those that the step has there.
func (p *StepPart) GPUNotes(node, local int) (lines string) {
	n := p.Hold(node)
	if n == nil || len(allUnits(n)) == 0 || p.Ask == nil {
		return ""
	}
	if p.Ask.GPUFreq != "" && local == 0 {
		lines = "GpuFreq=control_disabled\n"
	}
	spec := p.bindSpec()
	if b := gpuBindingOf(spec); b.verbose && !b.none {
		mine := taskUnits(spec, n, local)
		list := joinInts(mine)
		lines += fmt.Sprintf("gpu-bind: usable_gres=0x%X; bit_alloc=0x%X; local_inx=0; global_list=%s; local_list=%s\n",
			unitMask(mine), unitMask(allUnits(n)), list, list)
	}
	return lines
}

func unitMask(units []int32) *big.Int {
	mask := new(big.Int)
	for _, u := range units {
		mask.SetBit(mask, int(u), 1)
	}
	return mask
}

func gpuBind(r *Request, v string) error {
	if _, ok := parseGPUBind(v); !ok {
		c := r.Fail(ExitUsage, "Invalid --gpu-bind argument: gpu:%s", v).hint(
			"--gpu-bind takes none, closest, single:N, per_task:N, map_gpu:LIST or mask_gpu:LIST")
		if word, at := badGPUList(v); word != "" {
			c.Lines = append([]string{fmt.Sprintf("%s: error: Failed to validate %s, offending character is %c", r.tool, word,
				at)}, c.Lines...)
		}
		return c
	}
	r.keepOption("gpu-bind", v)
	return nil
}

// badGPUList finds the word of a list of GPUs that is no number, and where; "": all are, or there is no list.
func badGPUList(v string) (word string, at byte) {
	v = strings.TrimPrefix(v, "verbose,")
	kind, list, ok := strings.Cut(v, ":")
	digits := "0123456789"
	switch kind {
	case "map_gpu":
	case "mask_gpu":
		digits += "abcdefABCDEF"
	default:
		ok = false
	}
	for w := range strings.SplitSeq(list, ",") {
		w, _, _ = strings.Cut(w, "*")
		text := w
		if hex, found := strings.CutPrefix(w, "0x"); found {
			text = hex
		}
		if bad := strings.TrimLeft(text, digits); ok && bad != "" {
			return w, bad[0]
		}
	}
	return "", 0
}

// tresBind knows GPUs only, which are all that tasks see parts of.
func tresBind(r *Request, v string) error {
	for item := range strings.SplitSeq(v, "+") {
		bind, ok := strings.CutPrefix(item, "gres/gpu:")
		if !ok {
			return r.invalidHint("tres-bind", "gres/gpu:single:2 or another binding of --gpu-bind after gres/gpu:")
		}
		if _, ok := parseGPUBind(bind); !ok {
			return r.invalidHint("tres-bind", "gres/gpu:single:2 or another binding of --gpu-bind after gres/gpu:")
		}
		r.keepOption("gpu-bind", bind)
	}
	r.keepOption("tres-bind", v)
	return nil
}

func cpuBind(r *Request, v string) error {
	if v == "help" {
		r.Ask.Explain = cpubind.Help
		return nil
	}
	if _, err := cpubind.Parse(v); err != nil {
		c := r.Fail(ExitUsage, "Invalid --cpu-bind argument: %s", v)
		c.Lines = append(c.Lines, "srun: error: "+err.Error())
		return c
	}
	r.keepOption("cpu-bind", v)
	return nil
}

// memBind takes what the kernel does anyhow: memory near the CPU that asks for it.
func memBind(r *Request, v string) error {
	for w := range strings.SplitSeq(strings.ToLower(v), ",") {
		switch w {
		case "", "none", "local", "prefer", "sort", "nosort", "q", "quiet", "v", "verbose":
		default:
			return r.Fail(ExitError, "--mem-bind=%s is not supported", v).hint(
				"memory is taken near the CPUs of a task (local), or anywhere (none)")
		}
	}
	r.keepOption("mem-bind", v)
	return nil
}
