// Package keys is the list of the keys that slurm.conf may have: how `scontrol show config` prints each, its default,
// and whether it has an effect here. It is data; what a key does is in package conf.
package keys

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

//go:embed slurmconf.txt
var table string

//go:embed otherfiles.txt
var otherTable string

// Effect is what becomes of a key.
type Effect string

// The effects.
const (
	Acts   Effect = "acts"   // the value has an effect
	Always Effect = "always" // it holds here whatever the value is
	Shown  Effect = "shown"  // the value is kept and shown, and does nothing
)

// Key is one key of slurm.conf.
type Key struct {
	Name    string
	Form    string // of the value, see Show
	Default string // as shown, without its unit; empty: (null)
	Effect  Effect
	Why     string // why the value has no effect
	Listed  bool   // scontrol show config has it
}

// All are the keys: those that scontrol show config lists in its order, then the others.
var All = sync.OnceValue(func() []Key {
	var out []Key
	listed := true
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		switch f := strings.Split(line, "|"); {
		case strings.HasPrefix(line, "#"):
		case line == "-":
			listed = false
		default:
			out = append(out, Key{f[0], f[1], f[2], Effect(f[3]), f[4], listed})
		}
	}
	return out
})

var index = sync.OnceValue(func() map[string]int {
	out := map[string]int{}
	for i, k := range All() {
		out[strings.ToLower(k.Name)] = i
	}
	return out
})

// Find finds a key in any case.
func Find(name string) (Key, bool) {
	i, ok := index()[strings.ToLower(name)]
	if !ok {
		return Key{}, false
	}
	return All()[i], true
}

// The lines of slurm.conf that describe something, as In names them beside the files.
const (
	NodeLine      = "NodeName line"
	PartitionLine = "PartitionName line"
	NodeSetLine   = "NodeSet line"
	DownLine      = "DownNodes line"
)

// Others are the keys of the other files and of the lines that describe something, by file or line.
var Others = sync.OnceValue(func() map[string][]Key {
	out := map[string][]Key{}
	for line := range strings.Lines(otherTable) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "|")
		out[f[0]] = append(out[f[0]], Key{Name: f[1], Form: "text", Effect: Effect(f[2]), Why: f[3]})
	}
	return out
})

// In finds a key of another file or of a line that describes something.
func In(file, name string) (Key, bool) {
	for _, k := range Others()[file] {
		if strings.EqualFold(k.Name, name) {
			return k, true
		}
	}
	return Key{}, false
}

// units follow the numbers of a form.
var units = map[string]string{
	"seconds": " sec", "microseconds": " usec", "minutes": " min", "rate": " nodes/min", "percent": " percent",
	"suspendtime": " sec",
}

// Text is the value as scontrol show config prints it; nothing is set where value is empty.
func (k *Key) Text(value string) string {
	if value == "" {
		value = k.Default
	}
	switch {
	case value == "" && (k.Form == "blank" || k.Form == "priorityflags"):
		return ""
	case value == "":
		return "(null)"
	case k.Form == "minutes" || k.Form == "suspendtime": // or a word: UNLIMITED, INFINITE
		if _, err := strconv.Atoi(value); err != nil {
			return value
		}
	}
	return value + units[k.Form]
}

// Bare is what Text gave without its unit, as a file has it; empty for nothing.
func (k *Key) Bare(text string) string {
	if text == "(null)" || text == "(null type)" || text == "N/A" {
		return ""
	}
	return strings.TrimSuffix(text, units[k.Form])
}

// levels are the debug levels by number.
var levels = []string{"quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5"}

// Canonical is a value of the file in the words in which Slurm shows it.
func (k *Key) Canonical(value string) string {
	switch k.Form {
	case "yesno":
		switch strings.ToLower(value) {
		case "yes", "true", "1", "y", "up":
			return "Yes"
		}
		return "No"
	case "level":
		if n, err := strconv.Atoi(value); err == nil && n >= 0 && n < len(levels) {
			return levels[n]
		}
		return strings.ToLower(value)
	case "number", "seconds", "microseconds", "rate", "percent", "minutes":
		return strings.ToUpper(value)
	case "suspendtime":
		if value == "-1" {
			return "INFINITE"
		}
		return strings.ToUpper(value)
	case "governor", "governors":
		return inOrder(value, governors)
	case "flags":
		return inOrder(value, debugFlags)
	case "prologflags":
		return prologFlags(value)
	case "priorityflags":
		return inOrder(value, priorityFlags)
	case "partlimits":
		switch strings.ToLower(value) {
		case "all", "yes", "up", "true", "1":
			return "ALL"
		case "any":
			return "ANY"
		}
		return "NO"
	case "taskparam":
		return inOrder(strings.ToLower(value), taskParams)
	}
	return value
}

var (
	governors = strings.Fields("Conservative OnDemand Performance PowerSave SchedUtil UserSpace Low Medium High HighM1")
	// debugFlags are in the order in which Slurm prints them.
	debugFlags = strings.Fields("Accrue Agent Backfill BackfillMap BurstBuffer Cgroup CPU_Bind CpuFrequency Data " +
		"Dependency Elasticsearch Energy ExtSensors Federation FrontEnd Gang Gres Hetjob Interconnect JobAccountGather " +
		"JobComp JobContainer License Network NetworkRaw NodeFeatures NO_CONF_HASH Power Priority Profile Protocol " +
		"Reservation Route Script SelectType Steps Switch Task TimeCray TraceJobs Triggers WorkQueue")
	priorityFlags = strings.Fields("ACCRUE_ALWAYS SMALL_RELATIVE_TO_TIME CALCULATE_RUNNING DEPTH_OBLIVIOUS " +
		"FAIR_TREE NO_FAIR_TREE INCR_ONLY MAX_TRES MAX_TRES_GRES NO_NORMAL_ALL NO_NORMAL_ASSOC NO_NORMAL_PART " +
		"NO_NORMAL_QOS NO_NORMAL_TRES")
	taskParams = strings.Fields("verbose none boards sockets cores threads autobind=cores autobind=sockets " +
		"autobind=threads slurmd_off_spec oom_kill_step")
)

// inOrder writes the words of a list in the order and spelling of known ones; others follow.
func inOrder(value string, known []string) string {
	var out []string
	rest := strings.Split(value, ",")
	for _, k := range known {
		for i, w := range rest {
			if strings.EqualFold(strings.TrimSpace(w), k) {
				out, rest = append(out, k), append(append([]string{}, rest[:i]...), rest[i+1:]...)
				break
			}
		}
	}
	return strings.Join(append(out, rest...), ",")
}

// prologFlags adds the flags that others bring.
func prologFlags(value string) string {
	on := map[string]bool{}
	for w := range strings.SplitSeq(strings.ToLower(value), ",") {
		on[strings.TrimSpace(w)] = true
	}
	on["contain"] = on["contain"] || on["x11"]
	on["alloc"] = on["alloc"] || on["contain"] || on["nohold"]
	var out []string
	for _, name := range strings.Fields("Alloc Contain DeferBatch ForceRequeueOnFail NoHold RunInJob Serial X11") {
		if on[strings.ToLower(name)] {
			out = append(out, name)
		}
	}
	return strings.Join(out, ",")
}
