package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/policy"
)

// flagStates are the states Slurm shows instead of the base state, the strongest first.
var flagStates = []struct {
	flag        core.JobFlag
	name, short string
}{
	{core.Completing, "COMPLETING", "CG"},
	{core.Configuring, "CONFIGURING", "CF"},
	{core.RequeueHold, "REQUEUE_HOLD", "RH"},
	{core.Requeueing, "REQUEUED", "RQ"},
	{core.SpecialExit, "SPECIAL_EXIT", "SE"},
}

// ValidStates is the list squeue prints when it is given none of them.
const ValidStates = "PENDING,RUNNING,SUSPENDED,COMPLETED,CANCELLED,FAILED,TIMEOUT,NODE_FAIL,PREEMPTED,BOOT_FAIL," +
	"DEADLINE,OUT_OF_MEMORY," +
	"COMPLETING,CONFIGURING,RESIZING,RESV_DEL_HOLD,REQUEUED,REQUEUE_FED,REQUEUE_HOLD,REVOKED,SIGNALING," +
	"SPECIAL_EXIT,STAGE_OUT,STOPPED"

// otherStates are states of Slurm that no job of ours is ever in; they are valid in filters.
var otherStates = map[string]string{
	"RS": "RESIZING", "RD": "RESV_DEL_HOLD", "RF": "REQUEUE_FED", "RV": "REVOKED", "SI": "SIGNALING",
	"SO": "STAGE_OUT", "ST": "STOPPED",
}

// StateName is the long state with flags taken into account.
func StateName(s core.JobState, f core.JobFlag) string {
	for i := range flagStates {
		if f.Any(flagStates[i].flag) {
			return flagStates[i].name
		}
	}
	return s.String()
}

// StateCode is the two-letter form of StateName.
func StateCode(s core.JobState, f core.JobFlag) string {
	for i := range flagStates {
		if f.Any(flagStates[i].flag) {
			return flagStates[i].short
		}
	}
	return s.Short()
}

// StateFilter is a set of states as -t gives them.
type StateFilter struct {
	base  map[core.JobState]bool
	flags core.JobFlag
	all   bool
}

// ParseStates reads a comma list of state names or codes; bad is the first word that is none.
func ParseStates(words []string) (f StateFilter, bad string) {
	f.base = map[core.JobState]bool{}
next:
	for _, w := range words {
		if strings.EqualFold(w, "all") {
			f.all = true
			continue
		}
		if s, ok := core.ParseJobState(w); ok {
			f.base[s] = true
			continue
		}
		for _, x := range flagStates {
			if strings.EqualFold(w, x.name) || strings.EqualFold(w, x.short) {
				f.flags |= x.flag
				continue next
			}
		}
		for code, name := range otherStates {
			if strings.EqualFold(w, name) || strings.EqualFold(w, code) {
				continue next
			}
		}
		return f, w
	}
	return f, ""
}

// Match reports whether a job in this state is wanted. A state shown by its flag matches that flag only.
func (f *StateFilter) Match(s core.JobState, flags core.JobFlag) bool {
	if f.all {
		return true
	}
	for _, x := range flagStates {
		if flags.Any(x.flag) {
			return f.flags.Any(x.flag) || x.flag == core.SpecialExit && f.base[s] // which waits as others do
		}
	}
	return f.base[s]
}

// Ended reports whether jobs that have ended are wanted.
func (f *StateFilter) Ended() bool {
	for s := range f.base {
		if s.Final() {
			return true
		}
	}
	return f.all
}

// JobName is a job's id as listings print it: 12, 4_7, 4_[5-20%4]. room cuts long lists of tasks, 0 for none.
func JobName(id, base core.JobID, task int32, tasks string, room int) string {
	switch {
	case base == 0:
		return strconv.FormatInt(int64(id), 10)
	case tasks != "":
		return strconv.FormatInt(int64(base), 10) + "_[" + taskList(tasks, room) + "]"
	}
	return strconv.FormatInt(int64(base), 10) + "_" + strconv.FormatInt(int64(task), 10)
}

// taskList writes a list of pending tasks as Slurm does.
func taskList(tasks string, room int) string {
	a, err := grammar.ParseArray(tasks)
	if err != nil {
		return tasks
	}
	return grammar.FormatArray(a.Tasks, a.Throttle, room)
}

// minutes turns a limit into what grammar's formatters take.
func minutes(s core.Seconds) int64 {
	switch {
	case s >= core.Forever:
		return grammar.Unlimited
	case s == 0:
		return grammar.NotSet
	}
	return (int64(s) + 59) / 60
}

// size is what a job holds, or would hold.
type size struct {
	nodes, cpus int32
	mem         core.Bytes
	gres        map[string]int64
	weights     string // of its partition; empty: a CPU costs 1
}

// billing is what it costs.
func (z *size) billing() int64 {
	if z.weights == "" {
		return int64(z.cpus)
	}
	var gres []core.Gres
	for _, name := range sortedKeys(z.gres) {
		gres = append(gres, core.Gres{Name: name, Count: z.gres[name]})
	}
	return policy.BillingOf(z.weights, z.cpus, z.mem, z.nodes, gres)
}

// billed is what a job has or asked for, at the price of its partition.
func billed(j *client.Job) size {
	z := held(&j.Job)
	z.weights = j.Weights
	return z
}

// askedBy is what a job asked for, at the price of its partition.
func askedBy(j *client.Job) size {
	z := asked(j.Spec)
	z.weights = j.Weights
	return z
}

// asked is what a spec asks for; memory counts for all of it.
func asked(s *core.Spec) size {
	n, c := client.Wants(s.Shape)
	z := size{nodes: n, cpus: c}
	all := s.Shape.Total()
	switch {
	case s.Shape.MemPerCPU > 0:
		z.mem = s.Shape.MemPerCPU * core.Bytes(c)
	case s.Shape.Wide().MemPerGPU > 0:
		z.mem = s.Shape.More.MemPerGPU * core.Bytes(core.CountGres(all, "gpu"))
	default:
		z.mem = s.Shape.MemPerNode * core.Bytes(n)
	}
	for _, g := range all {
		z.add(g.Name, g.Count)
	}
	return z
}

// held is what a job has, or asked before it has anything.
func held(j *core.Job) size {
	if j.Alloc == nil {
		return asked(j.Spec)
	}
	z := size{nodes: int32(len(j.Alloc.Nodes))}
	for i := range j.Alloc.Nodes {
		n := &j.Alloc.Nodes[i]
		z.cpus += n.CPUs
		z.mem += n.Mem
		for _, g := range n.Gres {
			z.add(g.Name, int64(len(g.Units)))
		}
	}
	return z
}

func (z *size) add(name string, n int64) {
	if z.gres == nil {
		z.gres = map[string]int64{}
	}
	z.gres[name] += n
}

// tres writes cpu=8,mem=800M,node=2,billing=8,gres/gpu=4; sorted is sacct's order, by name.
func (z *size) tres(sorted bool) string {
	items := z.items()
	items = slices.Insert(items, len(items)-len(z.gres), tresItem{"billing", strconv.FormatInt(z.billing(), 10)})
	return joinTRES(items, sorted)
}

// stepTRES is that of a step: it is not charged by itself.
func (z *size) stepTRES() string { return joinTRES(z.items(), true) }

type tresItem struct{ name, value string }

func (z *size) items() []tresItem {
	items := []tresItem{{"cpu", strconv.Itoa(int(z.cpus))}}
	if z.mem > 0 {
		items = append(items, tresItem{"mem", memText(z.mem)})
	}
	if z.nodes > 0 {
		items = append(items, tresItem{"node", strconv.Itoa(int(z.nodes))})
	}
	for _, n := range sortedKeys(z.gres) {
		items = append(items, tresItem{"gres/" + n, strconv.FormatInt(z.gres[n], 10)})
	}
	return items
}

func joinTRES(items []tresItem, sorted bool) string {
	if sorted {
		slices.SortStableFunc(items, func(a, b tresItem) int { return cmp.Compare(a.name, b.name) })
	}
	var b strings.Builder
	for i, it := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(it.name + "=" + it.value)
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// memText is a size with its unit: 10M, 64G.
func memText(m core.Bytes) string {
	return grammar.FormatMemory(int64((m + core.MiB - 1) / core.MiB))
}

// gresText writes gpu:a100:2,… of what a spec asks for on each node.
func gresText(list []core.Gres) string {
	words := make([]string, len(list))
	for i, g := range list {
		words[i] = grammar.GRES{Name: g.Name, Type: g.Type, Count: g.Count}.String()
	}
	return strings.Join(words, ",")
}

// orNull is Slurm's word for an empty string.
func orNull(s string) string {
	if s == "" {
		return "(null)"
	}
	return s
}

// command is the script with its arguments.
func command(s *core.Spec) string {
	if s.From.Command == "" {
		return "(null)"
	}
	return strings.Join(append([]string{s.From.Command}, s.Args...), " ")
}

// oversubscribe is the word for how a job shares its nodes.
func oversubscribe(s *core.Spec) string {
	switch {
	case s.Shape.Exclusive:
		return "NO"
	case s.Shape.Wide().ExclusiveUser:
		return "USER"
	case s.Shape.Wide().OverSubscribe:
		return "YES"
	}
	return "OK"
}

// expectedEnd is when a job will end at the latest, or ended.
func expectedEnd(j *client.Job) core.Time {
	switch {
	case j.End != 0:
		return j.End
	case j.Start == 0 && j.Expected == 0, j.Spec.TimeLimit == 0, j.Spec.TimeLimit >= core.Forever:
		return 0
	case j.Start == 0:
		return j.Expected.Add(j.Spec.TimeLimit.Duration())
	}
	return j.Start.Add(j.Spec.TimeLimit.Duration() + j.PausedFor)
}

// seconds rounds a duration down to whole seconds.
func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// hetName is a component's id as listings print it.
func hetName(lead core.JobID, offset int32) string {
	return strconv.FormatInt(int64(lead), 10) + "+" + strconv.FormatInt(int64(offset), 10)
}

// hetSet is the ids of all components.
func hetSet(ref *core.HetRef) string {
	return fmt.Sprintf("%d-%d", ref.Lead, ref.Lead+core.JobID(ref.Count)-1)
}

// JobTRES is what a job holds, or would hold.
func JobTRES(j *client.Job) core.TRES {
	z := billed(j)
	list := []core.Amount{
		{Name: "cpu", Count: int64(z.cpus)},
		{Name: "mem", Count: int64(z.mem / core.MiB)},
		{Name: "node", Count: int64(z.nodes)},
		{Name: "billing", Count: z.billing()},
	}
	for name, n := range z.gres {
		list = append(list, core.Amount{Name: "gres/" + name, Count: n})
	}
	return core.TRESOf(list...)
}
