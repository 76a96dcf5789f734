// Package cpubind works out which of its CPUs each task of a step has on a node, as srun's --cpu-bind says.
package cpubind

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
)

// Bind is --cpu-bind: which of a step's CPUs on a node each of its tasks has.
type Bind struct {
	Verbose bool
	kind    string     // empty: tasks are bound where that is a matter of course
	list    []*big.Int // numbers or masks, one a task, round and round
}

// Help is what --cpu-bind=help says.
const Help = `CPU bind options:
    --cpu-bind=[quiet|verbose,]TYPE
  TYPE is one of
    none            tasks have all CPUs of the step
    threads, cores, sockets, ldoms
                    tasks have such parts of their own
    rank            the n-th task has the n-th CPU
    rank_ldom       the n-th task has the n-th socket
    map_cpu:LIST    the n-th task has the n-th CPU of LIST
    mask_cpu:LIST   the n-th task has the CPUs of the n-th mask
    map_ldom:LIST, mask_ldom:LIST
                    the same, with sockets
  Lists begin again when they are over; 2*3 stands for 2,2,2. CPUs are those of the node.
`

// Parse reads [quiet|verbose,]TYPE.
func Parse(text string) (b Bind, err error) {
	rest := text
	for rest != "" {
		word, more, _ := strings.Cut(rest, ",")
		switch strings.ToLower(word) {
		case "verbose", "v":
			b.Verbose = true
		case "quiet", "q":
			b.Verbose = false
		default:
			return b, b.read(rest)
		}
		rest = more
	}
	return b, nil
}

func (b *Bind) read(text string) error {
	kind, list, hasList := strings.Cut(text, ":")
	kind = strings.ToLower(kind)
	switch kind {
	case "no":
		kind = "none"
	case "thread", "core", "socket", "ldom":
		kind += "s"
	}
	b.kind = kind
	switch kind {
	case "none", "threads", "cores", "sockets", "ldoms", "rank", "rank_ldom":
		if hasList && list != "" {
			return fmt.Errorf("%s has no list", kind)
		}
		return nil
	case "map_cpu", "mask_cpu", "map_ldom", "mask_ldom":
	default:
		return fmt.Errorf("%q is no binding; none, threads, cores, sockets, ldoms, rank, rank_ldom, map_cpu:, "+
			"mask_cpu:, map_ldom: and mask_ldom: are", kind)
	}
	for item := range strings.SplitSeq(list, ",") {
		item, times, repeated := strings.Cut(item, "*")
		count := 1
		if repeated {
			n, err := strconv.Atoi(times)
			if err != nil || n < 1 || n > 1<<16 {
				return fmt.Errorf("%q is not a count", times)
			}
			count = n
		}
		n, ok := new(big.Int).SetString(item, 0)
		if !ok && strings.HasPrefix(kind, "mask_") {
			n, ok = new(big.Int).SetString(item, 16)
		}
		if !ok || n.Sign() < 0 || strings.HasPrefix(kind, "map_") && n.BitLen() > 16 {
			return fmt.Errorf("%q is not in a list of %s", item, kind)
		}
		for range count {
			b.list = append(b.list, n)
		}
	}
	return nil
}

// Node is a node as its CPUs are numbered: threads within cores within sockets.
type Node struct {
	Hardware core.Hardware
	Have     []int32 // what the step has there, ascending
}

func (n *Node) threads() int32 { return max(1, n.Hardware.Threads) }
func (n *Node) socket(cpu int32) int32 {
	return cpu / (max(1, n.Hardware.Cores) * n.threads())
}

// within are the CPUs of the step that a part holds.
func (n *Node) within(part func(cpu int32) bool) []int32 {
	var out []int32
	for _, c := range n.Have {
		if part(c) {
			out = append(out, c)
		}
	}
	return out
}

// groups divides the step's CPUs: those of one core (or socket) are together.
func (n *Node) groups(of func(cpu int32) int32) [][]int32 {
	var out [][]int32
	for i, c := range n.Have {
		if i == 0 || of(c) != of(n.Have[i-1]) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// Bound says how the tasks of a step are bound on a node.
type Bound struct {
	CPUs [][]int32 // of each task; nil: it is not bound
	Vars []string  // what its tasks are told
	note string    // how it is called in what --cpu-bind=verbose says
	size int32
}

// Tasks binds tasks of so many CPUs each. Where nothing was asked for, tasks get threads, cores or sockets of their own
// if these are as many as they need, and else all that the step has.
func (b Bind) Tasks(n *Node, tasks, perTask int) (*Bound, error) {
	out := &Bound{CPUs: make([][]int32, tasks), note: "MASK", size: max(n.Hardware.CPUs, 1)}
	coreOf := func(c int32) int32 { return c / n.threads() }
	kind, told := b.kind, "mask_cpu:"
	sockets := n.groups(n.socket)
	if kind == "" {
		switch tasks * perTask {
		case len(sockets):
			kind = "sockets"
		case len(n.groups(coreOf)):
			kind = "cores"
		case len(n.Have):
			kind = "threads"
		}
	}
	switch kind {
	case "none":
		out.CPUs, out.note, told = nil, "NONE", "none"
	case "threads":
		deal(out.CPUs, n, n.groups(func(c int32) int32 { return c }), perTask)
	case "cores":
		need := perTask
		if b.kind != "" { // a task has as many cores as its CPUs fill
			need = (perTask + int(n.threads()) - 1) / int(n.threads())
		}
		deal(out.CPUs, n, n.groups(coreOf), need)
	case "sockets", "ldoms":
		deal(out.CPUs, n, sockets, 1)
	case "rank", "map_cpu":
		out.note = map[string]string{"rank": "RANK", "map_cpu": "MAP"}[kind]
		told = kind
		for i := range out.CPUs {
			if kind == "rank" {
				out.CPUs[i] = []int32{n.Have[i%len(n.Have)]}
				continue
			}
			out.CPUs[i] = []int32{int32(b.list[i%len(b.list)].Int64())}
		}
	case "mask_cpu":
		for i := range out.CPUs {
			out.CPUs[i] = bitsOf(b.list[i%len(b.list)])
		}
	case "rank_ldom", "map_ldom", "mask_ldom":
		out.note = "LD" + strings.ToUpper(strings.TrimSuffix(kind, "_ldom"))
		for i := range out.CPUs {
			want := big.NewInt(int64(i % len(sockets)))
			if kind != "rank_ldom" {
				want = b.list[i%len(b.list)]
			}
			out.CPUs[i] = n.within(func(c int32) bool {
				if kind == "mask_ldom" {
					return want.Bit(int(n.socket(c))) == 1
				}
				return big.NewInt(int64(n.socket(c))).Cmp(want) == 0
			})
		}
	default:
		for i := range out.CPUs {
			out.CPUs[i] = n.Have
		}
	}
	for i, list := range out.CPUs {
		if len(list) == 0 || slices.ContainsFunc(list, func(c int32) bool { return !slices.Contains(n.Have, c) }) {
			return nil, outside(i, list, n.Have)
		}
	}
	out.vars(b, told)
	return out, nil
}

func outside(task int, list, have []int32) error {
	return core.Errorf(core.Invalid, "CPU binding outside of job step allocation: task %d would have %v of %v", task,
		list, have).Because("cpu_bind")
}

// deal gives each task so many parts, from one socket after the other; when they are all given, from the beginning.
func deal(tasks [][]int32, n *Node, parts [][]int32, need int) {
	var queues [][][]int32 // of each socket
	fill := func() {
		queues = nil
		for i, p := range parts {
			if i == 0 || n.socket(p[0]) != n.socket(parts[i-1][0]) {
				queues = append(queues, nil)
			}
			queues[len(queues)-1] = append(queues[len(queues)-1], p)
		}
	}
	fill()
	all := len(queues)
	for t := range tasks {
		at := t % max(1, all)
		for range max(1, need) {
			for k := 0; k < all && len(queues[at]) == 0; k++ {
				at = (at + 1) % all
			}
			if len(queues[at]) == 0 {
				fill()
			}
			tasks[t] = append(tasks[t], queues[at][0]...)
			queues[at] = queues[at][1:]
		}
		slices.Sort(tasks[t])
		tasks[t] = slices.Compact(tasks[t])
	}
}

func bitsOf(mask *big.Int) []int32 {
	var out []int32
	for i := range mask.BitLen() {
		if mask.Bit(i) == 1 {
			out = append(out, int32(i))
		}
	}
	return out
}

func maskOf(cpus []int32) *big.Int {
	m := new(big.Int)
	for _, c := range cpus {
		m.SetBit(m, int(c), 1)
	}
	return m
}

// vars are SLURM_CPU_BIND and its kin.
func (o *Bound) vars(b Bind, kind string) {
	loud := "quiet"
	if b.Verbose {
		loud = "verbose"
	}
	var items []string
	for _, list := range o.CPUs {
		if kind == "map_cpu" {
			items = append(items, fmt.Sprint(list[0]))
		} else if kind == "mask_cpu:" {
			items = append(items, fmt.Sprintf("0x%0*X", (o.size+3)/4, maskOf(list)))
		}
	}
	list := strings.Join(items, ",")
	if kind == "map_cpu" {
		kind += ":"
	}
	o.Vars = []string{
		"SLURM_CPU_BIND=" + loud + "," + kind + list, "SLURM_CPU_BIND_LIST=" + list,
		"SLURM_CPU_BIND_TYPE=" + kind, "SLURM_CPU_BIND_VERBOSE=" + loud,
	}
}

// Note is the line of --cpu-bind=verbose about a task; %d in it is for its process.
func (o *Bound) Note(host core.NodeName, rank int32, local int, have []int32) string {
	list := have
	if o.CPUs != nil {
		list = o.CPUs[local]
	}
	set := " set"
	if o.CPUs == nil {
		set = ""
	}
	return fmt.Sprintf("cpu-bind=%s - %s, task %2d %2d [%%d]: mask 0x%x%s\n", o.note, host, rank, local, maskOf(list), set)
}
