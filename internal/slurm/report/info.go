package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/core/hostlist"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/report/column"
)

// InfoRow is a line of sinfo: nodes of a partition that are alike in what is printed. Exact rows hold nodes that are
// alike in sizes as well.
type InfoRow struct {
	Part    *core.Partition
	Nodes   []*client.Node
	Version string
	Cluster string
	order   int // of the partition in the configuration
}

// Formats of sinfo (22.05). A # makes a column as wide as it must be.
const (
	InfoFormat      = "%#9P %.5a %.10l %.6D %.6t %N"
	InfoSummary     = "%#9P %.5a %.10l %.16F %N"
	InfoLong        = "%#9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N"
	InfoNode        = "%#9N %.6D %#.9P %6t"
	InfoNodeLong    = "%#9N %.6D %#.9P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
	InfoReasons     = "%20E %9u %19H %N"
	InfoReasonsLong = "%20E %12U %19H %6t %N"
	InfoAll         = "%a|%b|%c|%d|%e|%f|%g|%h|%l|%m|%n|%o|%p|%r|%s|%t|%u|%v|%w|%z|%A |%B |%C |%D |%E |%F |%G " +
		"|%H |%I |%L |%M |%N |%O |%P |%R |%S |%T |%U |%V |%X |%Y |%Z "
	infoSplitLetters   = "tTfbGEuUHnov"
	infoSizeLetters    = "cmdXYZzwOe"
	infoNodeless       = "n/a"
	infoReasonNone     = "none"
	infoReasonNoneLong = "Unknown"
)

// InfoQuery says which rows to make.
type InfoQuery struct {
	Format     []column.Column[InfoRow]
	PerNode    bool // -N
	Exact      bool // -e
	Reasons    bool // -R: nodes with a reason only
	Partitions []string
	Nodes      []string
	States     []string
	Responding bool // -r
	Summary    bool // one row a partition
}

func (r *InfoRow) first() *client.Node {
	if len(r.Nodes) == 0 {
		return nil
	}
	return r.Nodes[0]
}

func (r *InfoRow) names() string {
	names := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		names[i] = string(n.Name)
	}
	return hostlist.FoldSorted(names)
}

// ofNode shows something of the row's nodes, which are alike in it; none is for a row without nodes.
func ofNode(none string, f func(n *client.Node) string) func(*InfoRow) string {
	return func(r *InfoRow) string {
		if n := r.first(); n != nil {
			return f(n)
		}
		return none
	}
}

// least shows a number: the smallest, with + when others have more.
func least(get func(n *client.Node) int64) func(*InfoRow) string {
	return func(r *InfoRow) string {
		if len(r.Nodes) == 0 {
			return "0"
		}
		low, high := bounds(r.Nodes, get)
		if low != high {
			return strconv.FormatInt(low, 10) + "+"
		}
		return strconv.FormatInt(low, 10)
	}
}

func bounds[T cmp.Ordered](nodes []*client.Node, get func(n *client.Node) T) (low, high T) {
	low, high = get(nodes[0]), get(nodes[0])
	for _, n := range nodes[1:] {
		low, high = min(low, get(n)), max(high, get(n))
	}
	return low, high
}

func (r *InfoRow) cpus() cpuUse {
	var u cpuUse
	for _, n := range r.Nodes {
		u.add(cpusOf(n))
	}
	return u
}

func (r *InfoRow) use() cpuUse {
	var u cpuUse
	for _, n := range r.Nodes {
		u.add(nodeUse(n))
	}
	return u
}

func (r *InfoRow) star() string { return string(r.Part.Name) + boolText(r.Part.Default, "*", "") }

func infoTime(s core.Seconds) string {
	if s == 0 || s >= core.Forever {
		return "infinite"
	}
	return grammar.FormatLimit(minutes(s))
}

func (r *InfoRow) jobSize() string {
	low, high := max(1, r.Part.MinNodes), "infinite"
	if r.Part.MaxNodes > 0 {
		if low == r.Part.MaxNodes {
			return num(low)
		}
		high = num(r.Part.MaxNodes)
	}
	return num(low) + "-" + high
}

func infoReason(n *client.Node) string { return cmp.Or(n.Reason, infoReasonNone) }

func rangeOf[T cmp.Ordered](get func(n *client.Node) T, text func(T) string) func(*InfoRow) string {
	return func(r *InfoRow) string {
		if len(r.Nodes) == 0 {
			var none T
			return text(none)
		}
		low, high := bounds(r.Nodes, get)
		if a, b := text(low), text(high); a != b {
			return a + "-" + b
		}
		return text(low)
	}
}

// freeMemory is the range of free memory of the nodes that have reported it, in MiB.
func freeMemory(r *InfoRow) string {
	if len(r.Nodes) == 0 {
		return "0"
	}
	reported := InfoRow{}
	for _, n := range r.Nodes {
		if n.FreeMem > 0 {
			reported.Nodes = append(reported.Nodes, n)
		}
	}
	if len(reported.Nodes) == 0 {
		return "N/A"
	}
	return rangeOf(func(n *client.Node) int64 { return slurm.InMiB(n.FreeMem) },
		func(m int64) string { return num(m) })(&reported)
}

func stateWord(long bool) func(n *client.Node) string {
	return func(n *client.Node) string {
		c, l := parseNodeState(n.State).words()
		if long {
			return l
		}
		return c
	}
}

func sct(n *client.Node) string {
	s, c, t := shape(&n.Hardware)
	return fmt.Sprintf("%d:%d:%d", s, c, t)
}

// InfoFields is all that sinfo can show.
var InfoFields = []column.Field[InfoRow]{
	{Letter: 'P', Name: "Partition", Title: "PARTITION", Value: (*InfoRow).star},
	{Letter: 'R', Name: "PartitionName", Title: "PARTITION", Value: func(r *InfoRow) string {
		return string(r.Part.Name)
	}},
	{Letter: 'a', Name: "Available", Title: "AVAIL", Value: func(r *InfoRow) string {
		return cmp.Or(map[string]string{"INACTIVE": "inact"}[strings.ToUpper(r.Part.State)],
			strings.ToLower(r.Part.State), "up")
	}},
	{Letter: 'l', Name: "Time", Title: "TIMELIMIT", Value: func(r *InfoRow) string { return infoTime(r.Part.MaxTime) }},
	{Letter: 'L', Name: "DefaultTime", Title: "DEFAULTTIME", Value: func(r *InfoRow) string {
		if r.Part.DefaultTime == 0 {
			return infoNodeless
		}
		return infoTime(r.Part.DefaultTime)
	}},
	{Letter: 'D', Name: "Nodes", Title: "NODES", Value: func(r *InfoRow) string { return strconv.Itoa(len(r.Nodes)) }},
	{Letter: 't', Name: "StateCompact", Title: "STATE", Value: ofNode(infoNodeless, stateWord(false))},
	{Letter: 'T', Name: "StateLong", Title: "STATE", Value: ofNode(infoNodeless, stateWord(true))},
	{Name: "StateComplete", Title: "STATE", Value: ofNode(infoNodeless, func(n *client.Node) string {
		return strings.ToLower(n.State)
	})},
	{Letter: 'N', Name: "NodeList", Title: "NODELIST", Value: (*InfoRow).names},
	{Letter: 'n', Name: "NodeHost", Title: "HOSTNAMES", Value: ofNode("", func(n *client.Node) string {
		return cmp.Or(n.Host.Hostname, string(n.Name))
	})},
	{Letter: 'o', Name: "NodeAddr", Title: "NODE_ADDR", Value: ofNode("", func(n *client.Node) string {
		return cmp.Or(n.Host.Addr, string(n.Name))
	})},
	{Letter: 'C', Name: "CPUsState", Title: "CPUS(A/I/O/T)", Value: func(r *InfoRow) string { return r.cpus().String() }},
	{Letter: 'F', Name: "NodeAIOT", Title: "NODES(A/I/O/T)", Value: func(r *InfoRow) string { return r.use().String() }},
	{Letter: 'A', Name: "NodeAI", Title: "NODES(A/I)", Value: func(r *InfoRow) string {
		u := r.use()
		return fmt.Sprintf("%d/%d", u.alloc, u.idle)
	}},
	{Letter: 'c', Name: "CPUs", Title: "CPUS", Value: least(func(n *client.Node) int64 { return int64(n.Hardware.CPUs) })},
	{Letter: 'm', Name: "Memory", Title: "MEMORY", Value: least(func(n *client.Node) int64 {
		return slurm.InMiB(n.Hardware.Memory)
	})},
	{Name: "AllocMem", Title: "ALLOCMEM", Value: least(func(n *client.Node) int64 { return slurm.InMiB(n.AllocMem) })},
	{Letter: 'd', Name: "Disk", Title: "TMP_DISK", Value: least(func(n *client.Node) int64 {
		return slurm.InMiB(n.Hardware.TmpDisk)
	})},
	{Letter: 'w', Name: "Weight", Title: "WEIGHT", Value: least(func(n *client.Node) int64 {
		return int64(max(1, n.Weight))
	})},
	{Letter: 'X', Name: "Sockets", Title: "SOCKETS", Value: least(func(n *client.Node) int64 {
		s, _, _ := shape(&n.Hardware)
		return int64(s)
	})},
	{Letter: 'Y', Name: "Cores", Title: "CORES", Value: least(func(n *client.Node) int64 {
		_, c, _ := shape(&n.Hardware)
		return int64(c)
	})},
	{Letter: 'Z', Name: "Threads", Title: "THREADS", Value: least(func(n *client.Node) int64 {
		_, _, t := shape(&n.Hardware)
		return int64(t)
	})},
	{Letter: 'z', Name: "SocketCoreThread", Title: "S:C:T", Value: ofNode("0:0:0", sct)},
	{Letter: 'O', Name: "CPUsLoad", Title: "CPU_LOAD", Value: rangeOf(func(n *client.Node) float64 {
		return n.Load
	}, func(f float64) string { return fmt.Sprintf("%.2f", f) })},
	{Letter: 'e', Name: "FreeMem", Title: "FREE_MEM", Value: freeMemory},
	{Letter: 'f', Name: "Features", Title: "AVAIL_FEATURES", Value: ofNode("(null)", func(n *client.Node) string {
		return orNull(strings.Join(n.Features, ","))
	})},
	{Letter: 'b', Name: "features_act", Title: "ACTIVE_FEATURES", Value: ofNode("(null)", func(n *client.Node) string {
		return orNull(strings.Join(n.Features, ","))
	})},
	{Letter: 'G', Name: "Gres", Title: "GRES", Value: ofNode("(null)", func(n *client.Node) string {
		return orNull(nodeGres(&n.Hardware))
	})},
	{Name: "GresUsed", Title: "GRES_USED", Value: ofNode("(null)", gresUsed)},
	{Letter: 'E', Name: "Reason", Title: "REASON", Value: ofNode(infoReasonNone, infoReason)},
	{Letter: 'u', Name: "User", Title: "USER", Value: ofNode("root", func(n *client.Node) string {
		return cmp.Or(string(n.ReasonBy), infoReasonNoneLong)
	})},
	{Letter: 'U', Name: "UserLong", Title: "USER", Value: ofNode("root(0)", func(n *client.Node) string {
		return cmp.Or(string(n.ReasonBy), infoReasonNoneLong)
	})},
	{Letter: 'H', Name: "TimeStamp", Title: "TIMESTAMP", Value: ofNode(infoReasonNoneLong, func(n *client.Node) string {
		return TimeText(n.ReasonAt, infoReasonNoneLong)
	})},
	{Letter: 'v', Name: "Version", Title: "VERSION", Value: ofNode("N/A", func(n *client.Node) string {
		return n.Host.Version
	})},
	{Letter: 'V', Name: "Cluster", Title: "CLUSTER", Value: func(r *InfoRow) string { return "N/A" }},
	{Letter: 's', Name: "Size", Title: "JOB_SIZE", Value: (*InfoRow).jobSize},
	{Letter: 'r', Name: "Root", Title: "ROOT", Value: func(r *InfoRow) string {
		return boolText(r.Part.RootOnly, "yes", "no")
	}},
	{Letter: 'h', Name: "OverSubscribe", Title: "OVERSUBSCRIBE", Value: func(r *InfoRow) string {
		return cmp.Or(strings.ToUpper(r.Part.OverSubscribe), "NO")
	}},
	{Letter: 'g', Name: "Groups", Title: "GROUPS", Value: func(r *InfoRow) string {
		return cmp.Or(strings.Join(r.Part.AllowGroups, ","), "all")
	}},
	{Letter: 'S', Name: "AllocNodes", Title: "ALLOCNODES", Value: func(r *InfoRow) string {
		return cmp.Or(r.Part.AllocNodes, "all")
	}},
	{Letter: 'B', Name: "MaxCPUsPerNode", Title: "MAX_CPUS_PER_NODE", Value: func(r *InfoRow) string {
		return cmp.Or(positive(r.Part.MaxCPUsPerNode), "UNLIMITED")
	}},
	{Name: "Comment", Title: "COMMENT", Value: ofNode("(null)", func(n *client.Node) string {
		notes, _ := notesOf(n)
		return orNull(notes.Comment)
	})},
	{Name: "Extra", Title: "EXTRA", Value: ofNode("(null)", func(n *client.Node) string {
		notes, _ := notesOf(n)
		return orNull(notes.Extra)
	})},
	{Name: "Port", Title: "PORT", Value: ofNode("0", func(*client.Node) string { return "6818" })},
	{Letter: 'I', Name: "PriorityJobFactor", Title: "PRIO_JOB_FACTOR", Value: func(r *InfoRow) string {
		return num(max(1, r.Part.PriorityFactor))
	}},
	{Letter: 'p', Name: "PriorityTier", Title: "PRIO_TIER", Value: func(r *InfoRow) string {
		return num(max(1, r.Part.PriorityTier))
	}},
	{Letter: 'M', Name: "PreemptMode", Title: "PREEMPT_MODE", Value: func(r *InfoRow) string {
		return preemptMode(r.Part)
	}},
	{Letter: 'i', Name: "Reservation", Title: "RESERVATION", Value: func(*InfoRow) string { return "" }},
}

// InfoRows groups the nodes into rows: partitions in the order of the configuration, each split by what the format
// prints of its nodes.
func InfoRows(parts []core.Partition, nodes []client.Node, q InfoQuery) []InfoRow {
	var rows []InfoRow
	for i := range parts {
		p := &parts[i]
		if len(q.Partitions) > 0 && !slices.Contains(q.Partitions, string(p.Name)) {
			continue
		}
		rows = append(rows, partitionRows(p, i, nodes, q)...)
	}
	if q.PerNode {
		slices.SortStableFunc(rows, func(a, b InfoRow) int {
			return cmp.Or(hostlist.Compare(string(a.Nodes[0].Name), string(b.Nodes[0].Name)), cmp.Compare(a.order, b.order))
		})
	}
	if q.Reasons {
		rows = mergeReasons(rows)
	}
	return rows
}

func partitionRows(p *core.Partition, order int, nodes []client.Node, q InfoQuery) []InfoRow {
	var rows []InfoRow
	at := map[string]int{}
	for k := range nodes {
		n := &nodes[k]
		if !inPartition(n, p.Name) || !q.wants(n) {
			continue
		}
		key := q.key(p, n)
		i, ok := at[key]
		if !ok {
			i = len(rows)
			at[key] = i
			rows = append(rows, InfoRow{Part: p, order: order})
		}
		rows[i].Nodes = append(rows[i].Nodes, n)
	}
	if len(rows) == 0 && !q.PerNode && !q.Reasons {
		return []InfoRow{{Part: p, order: order}}
	}
	slices.SortStableFunc(rows, func(a, b InfoRow) int {
		return cmp.Compare(parseNodeState(a.Nodes[0].State).rank(), parseNodeState(b.Nodes[0].State).rank())
	})
	return rows
}

func (q *InfoQuery) wants(n *client.Node) bool {
	if len(q.Nodes) > 0 && !slices.Contains(q.Nodes, string(n.Name)) {
		return false
	}
	if q.Reasons && n.Reason == "" {
		return false
	}
	s := parseNodeState(n.State)
	if q.Responding && s.flags["NOT_RESPONDING"] {
		return false
	}
	return len(q.States) == 0 || slices.ContainsFunc(q.States, func(word string) bool {
		for _, part := range strings.FieldsFunc(word, StateSign) {
			if !s.matches(part) {
				return false
			}
		}
		return true
	})
}

// StateSign reports whether a sign joins states that a node must all have.
func StateSign(r rune) bool { return r == '&' || r == '+' }

// key is what nodes of one row have in common.
func (q *InfoQuery) key(p *core.Partition, n *client.Node) string {
	if q.PerNode {
		return string(n.Name)
	}
	if q.Summary {
		return ""
	}
	one := InfoRow{Part: p, Nodes: []*client.Node{n}}
	var b strings.Builder
	for _, c := range q.Format {
		if f := c.Field; f != nil && (strings.IndexByte(infoSplitLetters, f.Letter) >= 0 && f.Letter != 0 ||
			f.Letter == 0 && f.Name != "AllocMem" ||
			q.Exact && f.Letter != 0 && strings.IndexByte(infoSizeLetters, f.Letter) >= 0) {
			b.WriteString(f.Value(&one) + "\x00")
		}
	}
	return b.String()
}

// mergeReasons joins rows of several partitions that show the same nodes: -R does not speak of partitions.
func mergeReasons(rows []InfoRow) []InfoRow {
	seen := map[string]bool{}
	return slices.DeleteFunc(rows, func(r InfoRow) bool {
		name := r.names()
		if seen[name] {
			return true
		}
		seen[name] = true
		return false
	})
}

// partitionNodes are a partition's nodes as its definition names them, folded when it says ALL.
func partitionNodes(p *core.Partition, nodes []client.Node) string {
	if !strings.EqualFold(p.Nodes, "ALL") && p.Nodes != "" {
		return p.Nodes
	}
	r := InfoRow{Part: p}
	for i := range nodes {
		if inPartition(&nodes[i], p.Name) {
			r.Nodes = append(r.Nodes, &nodes[i])
		}
	}
	return cmp.Or(r.names(), "(null)")
}

// MergePartitions makes the rows of a format that says nothing of partitions: nodes of several partitions count once.
func MergePartitions(rows []InfoRow, q InfoQuery) []InfoRow {
	seen := map[string]bool{}
	var nodes []client.Node
	for i := range rows {
		for _, n := range rows[i].Nodes {
			if !seen[string(n.Name)] {
				seen[string(n.Name)] = true
				one := *n
				one.Partitions = []core.PartitionName{""}
				nodes = append(nodes, one)
			}
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	slices.SortFunc(nodes, func(a, b client.Node) int { return hostlist.Compare(string(a.Name), string(b.Name)) })
	return partitionRows(&core.Partition{}, 0, nodes, q)
}
