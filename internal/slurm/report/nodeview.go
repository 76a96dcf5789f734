package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/core/nodenotes"
	"bireme.dev/bireme/internal/slurm"
)

// ComputeNodes are the nodes that Slurm's commands know, in order: those that run jobs.
func ComputeNodes(all []client.Node) []client.Node {
	out := slices.DeleteFunc(all, func(n client.Node) bool { return n.LoginOnly() })
	slices.SortFunc(out, func(a, b client.Node) int { return hostlist.Compare(string(a.Name), string(b.Name)) })
	return out
}

// nodeState is a node's state taken apart: base and flags as the API writes them (IDLE+DRAIN, DOWN*).
type nodeState struct {
	base  string
	flags map[string]bool
}

func parseNodeState(text string) nodeState {
	s := nodeState{flags: map[string]bool{}}
	for i, word := range strings.Split(strings.ToUpper(text), "+") {
		if trimmed, ok := strings.CutSuffix(word, "*"); ok {
			word, s.flags["NOT_RESPONDING"] = trimmed, true
		}
		switch {
		case i == 0:
			s.base = word
		case word == "NO_RESPOND":
			s.flags["NOT_RESPONDING"] = true
		default:
			s.flags[word] = true
		}
	}
	return s
}

// words are the short and the long form that sinfo prints, as Slurm's order of conditions gives them.
func (s nodeState) words() (compact, long string) {
	working := s.base == "ALLOCATED" || s.base == "MIXED" || s.flags["COMPLETING"]
	reboot := s.flags["REBOOT_REQUESTED"] || s.flags["REBOOT_ISSUED"]
	switch {
	case s.flags["INVALID_REG"]:
		return "inval", "inval"
	case s.flags["MAINT"] || s.flags["MAINTENANCE"]:
		if compact, long = "maint", "maint"; working {
			compact, long = baseWords(s.base)
		}
	case reboot && !working:
		if compact, long = "boot", "reboot"; s.flags["REBOOT_ISSUED"] {
			return "boot^", "reboot^"
		}
		return compact, long
	case s.flags["DRAIN"] && working:
		compact, long = "drng", "draining"
	case s.flags["DRAIN"]:
		compact, long = "drain", "drained"
	case s.flags["FAIL"] && working:
		compact, long = "failg", "failing"
	case s.flags["FAIL"]:
		compact, long = "fail", "fail"
	case s.base == "DOWN":
		compact, long = "down", "down"
	case s.flags["COMPLETING"] && s.base == "ALLOCATED":
		return "alloc+", "allocated+"
	case s.flags["COMPLETING"]:
		compact, long = "comp", "completing"
	case s.flags["RESERVED"] && s.base == "IDLE":
		compact, long = "resv", "reserved"
	case s.flags["BLOCKED"] && s.base == "IDLE":
		compact, long = "block", "blocked"
	case s.flags["PLANNED"] && s.base == "IDLE":
		compact, long = "plnd", "planned"
	default:
		compact, long = baseWords(s.base)
	}
	mark := s.mark(working)
	return compact + mark, long + mark
}

// marks are the signs behind a state, of which the first that holds is shown.
var marks = []struct{ flag, sign string }{
	{"REBOOT_ISSUED", "^"},
	{"REBOOT_REQUESTED", "@"},
	{"POWERING_UP", "#"},
	{"POWERING_DOWN", "%"},
	{"POWERED_DOWN", "~"},
	{"POWER_DOWN", "!"},
	{"NOT_RESPONDING", "*"},
}

func (s nodeState) mark(working bool) string {
	if (s.flags["MAINT"] || s.flags["MAINTENANCE"]) && working {
		return "$"
	}
	for _, m := range marks {
		if s.flags[m.flag] {
			return m.sign
		}
	}
	if s.flags["PLANNED"] && s.base == "MIXED" {
		return "-"
	}
	return ""
}

func baseWords(base string) (compact, long string) {
	switch base {
	case "ALLOCATED":
		return "alloc", "allocated"
	case "MIXED":
		return "mix", "mixed"
	case "FUTURE":
		return "futr", "future"
	case "UNKNOWN", "":
		return "unk", "unknown"
	}
	return strings.ToLower(base), strings.ToLower(base)
}

// rank orders states for sinfo: those that need attention first, then by Slurm's numbers, the greatest first.
func (s nodeState) rank() int {
	flag := 0
	for i, name := range []string{"DRAIN", "NOT_RESPONDING", "PLANNED", "COMPLETING"} {
		if s.flags[name] {
			flag = (i + 1) * 10
		}
	}
	return -(flag + map[string]int{"DOWN": 1, "IDLE": 2, "ALLOCATED": 3, "ERROR": 4, "MIXED": 5, "FUTURE": 6}[s.base])
}

// signs are all that may stand behind a state's word.
const signs = "$^@#%~!*+-"

// matches reports whether a filter word of sinfo -t means this state.
func (s nodeState) matches(word string) bool {
	word = strings.ToLower(strings.TrimRight(word, signs))
	compact, long := s.words()
	compact, long = strings.TrimRight(compact, signs), strings.TrimRight(long, signs)
	switch word {
	case "all":
		return true
	case "drain", "drained", "draining", "drng":
		if word == "drain" {
			return s.flags["DRAIN"]
		}
		return compact == word || long == word
	case "reboot", "boot", "reboot_requested", "reboot_issued":
		return s.flags["REBOOT_ISSUED"] && word != "reboot_requested" || s.flags["REBOOT_REQUESTED"] &&
			word != "reboot_issued"
	case "power_down", "powered_down", "powering_down", "power_up", "powering_up", "cloud":
		return s.flags[strings.ToUpper(map[string]string{"power_up": "powering_up"}[word])] ||
			s.flags[strings.ToUpper(word)] ||
			word == "power_down" && s.flags["POWERED_DOWN"]
	case "no_respond", "not_responding":
		return s.flags["NOT_RESPONDING"]
	case "idle":
		return s.base == "IDLE"
	case "down":
		return s.base == "DOWN"
	case "alloc", "allocated":
		return s.base == "ALLOCATED" || s.base == "MIXED"
	case "mix", "mixed":
		return s.base == "MIXED"
	}
	return compact == word || long == word
}

// nodeStates are the words sinfo -t takes.
var nodeStates = strings.Fields("all alloc allocated mix mixed idle down drain drained draining drng comp completing " +
	"fail failing failg " +
	"future futr maint no_respond not_responding planned plnd resv reserved unk unknown reboot boot reboot_requested " +
	"reboot_issued " +
	"power_down powered_down powering_down power_up powering_up cloud error")

// ValidNodeState reports whether sinfo -t knows a word.
func ValidNodeState(word string) bool {
	return slices.Contains(nodeStates, strings.ToLower(strings.TrimRight(word, signs)))
}

// cpuUse is how a node's CPUs stand.
type cpuUse struct{ alloc, idle, other, total int32 }

func cpusOf(n *client.Node) cpuUse {
	u := cpuUse{alloc: n.AllocCPUs, total: n.Hardware.CPUs}
	rest := max(0, u.total-u.alloc)
	if s := parseNodeState(n.State); s.base == "DOWN" || s.base == "UNKNOWN" || s.base == "FUTURE" ||
		s.flags["DRAIN"] || s.flags["FAIL"] {
		u.other = rest
	} else {
		u.idle = rest
	}
	return u
}

func (u *cpuUse) add(o cpuUse) {
	u.alloc += o.alloc
	u.idle += o.idle
	u.other += o.other
	u.total += o.total
}

func (u cpuUse) String() string { return fmt.Sprintf("%d/%d/%d/%d", u.alloc, u.idle, u.other, u.total) }

// nodeUse counts a node once where its state puts it.
func nodeUse(n *client.Node) cpuUse {
	switch s := parseNodeState(n.State); {
	case s.base == "ALLOCATED" || s.base == "MIXED" || s.flags["COMPLETING"]:
		return cpuUse{alloc: 1, total: 1}
	case s.base == "IDLE" && !s.flags["DRAIN"] && !s.flags["FAIL"] && !s.flags["NOT_RESPONDING"]:
		return cpuUse{idle: 1, total: 1}
	}
	return cpuUse{other: 1, total: 1}
}

func hardwareTRES(cpus int32, mem core.Bytes, nodes int32, billing bool, gres []core.Gres) string {
	if !billing {
		return billedTRES(cpus, mem, nodes, -1, gres)
	}
	return billedTRES(cpus, mem, nodes, int64(cpus), gres)
}

// billedTRES writes cpu=8,mem=64G,node=1,billing=8,gres/gpu=4; a negative billing is left out.
func billedTRES(cpus int32, mem core.Bytes, nodes int32, billing int64, gres []core.Gres) string {
	words := []string{fmt.Sprintf("cpu=%d", cpus)}
	if mem > 0 {
		words = append(words, "mem="+memText(mem))
	}
	if nodes > 0 {
		words = append(words, fmt.Sprintf("node=%d", nodes))
	}
	if billing >= 0 {
		words = append(words, fmt.Sprintf("billing=%d", billing))
	}
	sums := map[string]int64{}
	for _, g := range gres {
		sums[g.Name] += g.Count
	}
	for _, name := range sortedKeys(sums) {
		words = append(words, fmt.Sprintf("gres/%s=%d", name, sums[name]))
	}
	return strings.Join(words, ",")
}

func joinNames[T ~string](list []T) string {
	words := make([]string, len(list))
	for i, w := range list {
		words[i] = string(w)
	}
	return strings.Join(words, ",")
}

// shape gives sockets, cores a socket and threads a core, guessing one socket where nobody said.
func shape(h *core.Hardware) (s, c, t int32) {
	s, t = max(1, h.Sockets), max(1, h.Threads)
	return s, cmp.Or(h.Cores, max(1, h.CPUs/(s*t))), t
}

// notesOf are what was changed of a node, and the features that it may have.
func notesOf(n *client.Node) (notes nodenotes.Notes, available []string) {
	if n.Notes != nil {
		notes = *n.Notes
	}
	if notes.Available != nil {
		return notes, notes.Available
	}
	return notes, n.Features
}

// ShowNode prints a node as scontrol show node of Slurm 22.05 does.
func ShowNode(n *client.Node, o ShowOptions) string {
	s, c, t := shape(&n.Hardware)
	alloc := ""
	if n.AllocCPUs > 0 || n.AllocMem > 0 {
		alloc = hardwareTRES(n.AllocCPUs, n.AllocMem, 0, false, n.AllocGres)
	}
	freeMem := "N/A"
	if n.FreeMem > 0 {
		freeMem = num(slurm.InMiB(n.FreeMem))
	}
	notes, available := notesOf(n)
	bind := ""
	if notes.CPUBind != "" {
		bind = "CpuBind=" + bindText(notes.CPUBind) + " "
	}
	lines := []string{
		fmt.Sprintf("NodeName=%s Arch=%s %sCoresPerSocket=%d ", n.Name, cmp.Or(n.Host.Arch, "(null)"), bind, c),
		fmt.Sprintf("CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=%.2f", n.AllocCPUs, n.Hardware.CPUs, n.Hardware.CPUs, n.Load),
		"AvailableFeatures=" + orNull(strings.Join(available, ",")),
		"ActiveFeatures=" + orNull(strings.Join(n.Features, ",")),
		"Gres=" + orNull(nodeGres(&n.Hardware)),
	}
	if o.Detail {
		lines = append(lines, "GresDrain=N/A", "GresUsed="+gresUsed(n))
	}
	lines = append(lines,
		fmt.Sprintf("NodeAddr=%s NodeHostName=%s Version=%s", cmp.Or(n.Host.Addr, string(n.Name)),
			cmp.Or(n.Host.Hostname, string(n.Name)), n.Host.Version),
		"OS="+n.Host.OS+" ",
		fmt.Sprintf("RealMemory=%d AllocMem=%d FreeMem=%s Sockets=%d Boards=1", slurm.InMiB(n.Hardware.Memory),
			slurm.InMiB(n.AllocMem),
			freeMem, s),
		fmt.Sprintf("State=%s ThreadsPerCore=%d TmpDisk=%d Weight=%d Owner=N/A MCS_label=N/A", n.State, t,
			slurm.InMiB(n.Hardware.TmpDisk), max(1, n.Weight)),
	)
	if n.Restart != nil && n.Restart.Next != "" {
		lines = append(lines, "NextState="+strings.ToUpper(string(n.Restart.Next)))
	}
	lines = append(lines,
		"Partitions="+joinNames(n.Partitions)+" ",
		fmt.Sprintf("BootTime=%s SlurmdStartTime=%s", TimeText(n.Host.Boot, "None"), TimeText(n.Host.AgentStart, "None")),
		"LastBusyTime="+TimeText(n.LastBusy, "Unknown")+resumeAt(n),
		"CfgTRES="+hardwareTRES(n.Hardware.CPUs, n.Hardware.Memory, 0, true, n.Hardware.Gres),
		"AllocTRES="+alloc,
		"CapWatts=n/a",
		"CurrentWatts=0 AveWatts=0",
		"ExtSensorsJoules=n/s ExtSensorsWatts=0 ExtSensorsTemp=n/s")
	if n.Reason == "" && len(n.Hardware.Sick) > 0 { // some of its GPUs are out of use, it is not
		lines = append(lines, "Reason="+core.SickText(n.Hardware.Sick))
	}
	if n.Reason != "" {
		lines = append(lines, fmt.Sprintf("Reason=%s [%s@%s]", n.Reason, cmp.Or(string(n.ReasonBy), "slurm"),
			TimeText(n.ReasonAt, "Unknown")))
	}
	if notes.Comment != "" {
		lines = append(lines, "Comment="+notes.Comment)
	}
	if notes.Extra != "" {
		lines = append(lines, "Extra="+notes.Extra)
	}
	if n.Reservation != "" {
		lines = append(lines, "ReservationName="+n.Reservation)
	}
	return block(lines, o.OneLine)
}

// resumeAt says when a node comes back into service by itself; one of which nobody said so has no word for it, as in
// Slurm 22.05.
func resumeAt(n *client.Node) string {
	if n.ResumeAt == 0 {
		return ""
	}
	return " ResumeAfterTime=" + TimeText(n.ResumeAt, "None")
}

// sharesGPU reports whether units of a resource are parts of GPUs: they are where the GPUs are.
func sharesGPU(name string) bool { return name == "mps" || name == "shard" }

// gpuType is the type of a node's GPUs, if they have one.
func gpuType(h *core.Hardware) string {
	kind := ""
	for _, g := range h.Gres {
		if g.Name == "gpu" {
			if kind != "" && kind != g.Type {
				return ""
			}
			kind = g.Type
		}
	}
	return kind
}

// nodeGres writes what a node has, with the sockets it is at where they are known: gpu:a100:4(S:0-1).
func nodeGres(h *core.Hardware) string {
	list := slices.Clone(h.Gres)
	for i := range list {
		if g := &list[i]; g.Type == "" && sharesGPU(g.Name) {
			g.Type = gpuType(h)
		}
	}
	words := strings.Split(gresText(list), ",")
	for i, g := range h.Gres {
		var sockets []int32
		for _, u := range h.Units {
			own := u.Name == g.Name && u.Type == g.Type || sharesGPU(g.Name) && u.Name == "gpu"
			if own && u.Socket > 0 && !slices.Contains(sockets, u.Socket-1) {
				sockets = append(sockets, u.Socket-1)
			}
		}
		if len(sockets) > 0 {
			words[i] += "(S:" + ranges(sockets) + ")"
		}
	}
	return strings.Join(words, ",")
}

// gresUsed writes what is in use of each resource a node has, and which units of those that are devices.
func gresUsed(n *client.Node) string {
	var words []string
	for _, g := range n.Hardware.Gres {
		var used int64
		for _, a := range n.AllocGres {
			if a.Name == g.Name && (a.Type == g.Type || a.Type == "") {
				used += a.Count
			}
		}
		device := hasDevices(g.Name) ||
			slices.ContainsFunc(n.Hardware.Units, func(u core.Unit) bool { return u.Name == g.Name })
		if !device {
			words = append(words, fmt.Sprintf("%s:%d", strings.TrimSuffix(g.Name+":"+g.Type, ":"), used))
			continue
		}
		kind := g.Type
		if kind == "" && sharesGPU(g.Name) {
			kind = gpuType(&n.Hardware)
		}
		var units []int32
		for _, a := range n.AllocUnits {
			if a.Name == g.Name && a.Type == g.Type {
				units = append(units, a.Units...)
			}
		}
		words = append(words, fmt.Sprintf("%s:%s:%d(IDX:%s)", g.Name, orNull(kind), used, cmp.Or(ranges(units), "N/A")))
	}
	return orNull(strings.Join(words, ","))
}

// preemptMode is what becomes of a partition's jobs that are preempted, as Slurm prints it.
func preemptMode(p *core.Partition) string {
	return cmp.Or(strings.ToUpper(string(p.PreemptMode)), "OFF")
}

func inPartition(n *client.Node, p core.PartitionName) bool {
	for _, name := range n.Partitions {
		if name == p {
			return true
		}
	}
	return false
}
