package slurmsite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/sim"
)

// snapshot is what a Slurm says of itself at a moment.
type snapshot struct {
	nodes      []*core.Node
	partitions []core.Partition
	records    []record
	now        core.Time
}

// record is a job of it.
type record struct {
	id       string // as Slurm shows it: 12, 7_3
	user     string
	state    string
	submit   core.Time
	eligible core.Time
	start    core.Time // expected, of one that waits
	end      core.Time
	limit    core.Seconds
	nodes    string
	reason   string
	spec     *core.Spec
}

// look reads nodes, partitions, jobs of the past and the queue. It only asks.
func (s *site) look(ctx context.Context, since core.Time) (*snapshot, error) {
	l := &snapshot{now: core.At(s.app.Now())}
	text, err := s.slurm(ctx, "scontrol", "-o", "show", "node")
	if err != nil {
		return nil, err
	}
	l.readNodes(text)
	if text, err = s.slurm(ctx, "scontrol", "-a", "-o", "show", "partition"); err != nil {
		return nil, err
	}
	l.readPartitions(text)
	if len(l.nodes) == 0 || len(l.partitions) == 0 {
		return nil, errors.New("the Slurm here names no nodes or no partitions")
	}
	text, err = s.slurm(ctx, "sacct", "-aXnP", "-S", since.Go().Local().Format("2006-01-02T15:04:05"), "-o", acctFields)
	if err != nil {
		return nil, err
	}
	byID, err := l.readJobs(text)
	if err != nil {
		return nil, err
	}
	if text, err = s.slurm(ctx, "squeue", "-har", "-t", "PD", "-o", queueFields); err != nil {
		return nil, err
	}
	return l, l.readQueue(text, byID)
}

const (
	acctFields = "JobID,JobIDRaw,User,Partition,State,Submit,Eligible,Start,End,TimelimitRaw,ReqTRES,NodeList,Priority," +
		"Constraints"
	queueFields = "%A|%i|%S|%r|%Q"
)

func (l *snapshot) readNodes(text string) {
	for line := range strings.Lines(text) {
		f := fields(line)
		n := &core.Node{Name: core.NodeName(f["NodeName"]), Weight: int32(number(f["Weight"]))}
		if n.Name == "" {
			continue
		}
		n.Hardware = core.Hardware{
			CPUs:   int32(cmp.Or(number(f["CPUEfctv"]), number(f["CPUTot"]))),
			Memory: core.Bytes(number(f["RealMemory"])) * core.MiB,
		}
		if feats := f["ActiveFeatures"]; feats != "" && feats != "(null)" {
			n.Features = strings.Split(feats, ",")
		}
		for item := range strings.SplitSeq(f["Gres"], ",") {
			item, _, _ = strings.Cut(item, "(")
			p := strings.Split(item, ":")
			if len(p) < 2 {
				continue
			}
			g := core.Gres{Name: p[0], Count: number(p[len(p)-1])}
			if len(p) > 2 {
				g.Type = p[1]
			}
			n.Hardware.Gres = append(n.Hardware.Gres, g)
		}
		for _, bad := range []string{"DOWN", "DRAIN", "FAIL", "FUTURE", "POWERED_DOWN"} {
			if strings.Contains(f["State"], bad) {
				n.Flags |= core.NodeDrain
			}
		}
		l.nodes = append(l.nodes, n)
	}
}

func (l *snapshot) readPartitions(text string) {
	for line := range strings.Lines(text) {
		f := fields(line)
		p := core.Partition{
			Name: core.PartitionName(f["PartitionName"]), Nodes: f["Nodes"], Default: f["Default"] == "YES",
			MaxTime: clock(f["MaxTime"]), DefaultTime: clock(f["DefaultTime"]), PriorityTier: int32(number(f["PriorityTier"])),
			MaxNodes: int32(number(f["MaxNodes"])), LLN: f["LLN"] == "YES",
		}
		if f["State"] != "UP" {
			p.State = f["State"]
		}
		if o := f["OverSubscribe"]; o != "NO" {
			p.OverSubscribe = o
		}
		if p.Name != "" && p.Nodes != "" && p.Nodes != "(null)" {
			l.partitions = append(l.partitions, p)
		}
	}
}

// readJobs reads sacct's rows: those that started, and by id those that wait.
func (l *snapshot) readJobs(text string) (waiting map[string]*record, err error) {
	waiting = map[string]*record{}
	count := strings.Count(acctFields, ",") + 1
	for line := range strings.Lines(text) {
		p := strings.SplitN(strings.TrimRight(line, "\n"), "|", count)
		if len(p) != count {
			return nil, fmt.Errorf("sacct: a row has %d fields, not %d: %.80q", len(p), count, line)
		}
		r := &record{
			id: p[0], user: p[2], state: p[4], submit: seconds(p[5]), eligible: seconds(p[6]), start: seconds(p[7]),
			end: seconds(p[8]), limit: core.Seconds(number(p[9])) * 60, nodes: p[11],
		}
		if p[9] == "UNLIMITED" {
			r.limit = core.Forever
		}
		r.spec = specOf(p[3], p[10], p[13], r.limit)
		setPriority(r.spec, p[12])
		switch {
		case r.state == "PENDING":
			waiting[p[1]] = r
		case r.start > 0 && !strings.HasPrefix(r.nodes, "None"):
			l.records = append(l.records, *r)
		}
	}
	return waiting, nil
}

// readQueue adds a record for each job and array task that waits.
func (l *snapshot) readQueue(text string, waiting map[string]*record) error {
	count := strings.Count(queueFields, "|") + 1
	for line := range strings.Lines(text) {
		p := strings.SplitN(strings.TrimRight(line, "\n"), "|", count)
		if len(p) != count {
			return fmt.Errorf("squeue: a row has %d fields, not %d: %.80q", len(p), count, line)
		}
		base, _, _ := strings.Cut(p[1], "_")
		w := cmp.Or(waiting[p[0]], waiting[base])
		if w == nil {
			continue // it came after sacct was asked
		}
		r, spec, x := *w, *w.spec, *w.spec.More()
		spec.Extra = &x
		r.id, r.start, r.reason, r.spec = p[1], seconds(p[2]), p[3], &spec
		setPriority(r.spec, p[4])
		l.records = append(l.records, r)
	}
	return nil
}

// shadow makes the cluster and the jobs for the production rules.
func (l *snapshot) shadow(since core.Time) (*sim.Shadow, []record) {
	in := &sim.Shadow{Nodes: l.nodes, Partitions: l.partitions, Begin: since}
	var kept []record
	for _, r := range l.records {
		j := sim.ShadowJob{Spec: r.spec, Arrival: max(r.submit, r.eligible)}
		switch {
		case r.state == "PENDING":
			if strings.Contains(r.reason, "Held") || strings.HasPrefix(r.reason, "Dependency") {
				continue
			}
			j.Run = r.limit
		case r.end > 0:
			j.Run = core.Seconds((r.end - max(r.start, since)) / 1e6)
		default:
			j.Run = max(core.Seconds((l.now-max(r.start, since))/1e6), r.limit-core.Seconds((since-min(r.start, since))/1e6))
		}
		if r.start > 0 && r.start < since && r.state != "PENDING" {
			if r.end > 0 && r.end <= since {
				continue
			}
			j.Nodes = r.nodes
		}
		if j.Run >= core.Forever/2 {
			j.Run = 365 * 24 * 3600
		}
		j.Spec.Name = strconv.Itoa(len(kept)) // jobs are put in another order
		in.Jobs, kept = append(in.Jobs, j), append(kept, r)
	}
	return in, kept
}

func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// seconds reads a moment in seconds since 1970; what is none is 0.
func seconds(text string) core.Time { return core.Time(max(0, number(text))) * 1e6 }

// clock reads [days-]hours:minutes:seconds; UNLIMITED and NONE are 0.
func clock(text string) core.Seconds {
	var days int64
	if d, rest, ok := strings.Cut(text, "-"); ok {
		days, text = number(d), rest
	}
	total := int64(0)
	for part := range strings.SplitSeq(text, ":") {
		total = total*60 + number(part)
	}
	return core.Seconds(days*24*3600 + total)
}

func setPriority(s *core.Spec, text string) {
	if n := number(text); n > 0 && n < 1<<32 {
		p := uint32(n)
		s.Extra.Priority = &p
	}
}

// specOf is what a job asks for, as sacct tells it: ReqTRES and constraints.
func specOf(partition, tres, constraints string, limit core.Seconds) *core.Spec {
	s := &core.Spec{TimeLimit: limit, Partition: core.ParsePartitions(partition), Extra: &core.Extra{}}
	cpus, nodes, mem := int64(1), int64(1), core.Bytes(0)
	var gres []core.Gres
	for item := range strings.SplitSeq(tres, ",") {
		key, val, _ := strings.Cut(item, "=")
		switch kind, isGres := strings.CutPrefix(key, "gres/"); {
		case key == "cpu":
			cpus = max(1, number(val))
		case key == "node":
			nodes = max(1, number(val))
		case key == "mem":
			mem = memory(val)
		case isGres:
			name, typ, _ := strings.Cut(kind, ":")
			gres = append(gres, core.Gres{Name: name, Type: typ, Count: number(val)})
		}
	}
	s.Shape = core.Shape{
		NodesMin: int32(nodes), NodesMax: int32(nodes), Tasks: int32(max(cpus, nodes)), CPUsPerTask: 1,
		MemPerCPU: mem / core.Bytes(cpus),
	}
	for _, g := range gres {
		if g.Type == "" && len(gres) > 1 && slicesHasTyped(gres, g.Name) {
			continue
		}
		g.Count = max(1, g.Count/nodes)
		s.Shape.Gres = append(s.Shape.Gres, g)
	}
	if c, err := core.ParseConstraint(constraints); err == nil {
		s.Extra.Constraint = c
	}
	return s
}

func slicesHasTyped(list []core.Gres, name string) bool {
	for _, g := range list {
		if g.Name == name && g.Type != "" {
			return true
		}
	}
	return false
}

// memory reads 200M, 1.50G.
func memory(text string) core.Bytes {
	if text == "" {
		return 0
	}
	unit := core.MiB
	switch text[len(text)-1] {
	case 'K':
		unit = core.KiB
	case 'G':
		unit = core.GiB
	case 'T':
		unit = core.GiB << 10
	}
	f, err := strconv.ParseFloat(strings.TrimRight(text, "KMGT"), 64)
	if err != nil || f < 0 {
		return 0
	}
	return core.Bytes(f * float64(unit))
}
