package report

import (
	"fmt"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// limit is how long the step may last by a limit of its own; without one only its job's ends it.
func (r *StepRow) limit(format func(minutes int64) string) string {
	if r.Step == nil || r.Step.Options.TimeLimit == 0 {
		return "UNLIMITED"
	}
	return format(minutes(r.Step.Options.TimeLimit))
}

// size is what a numbered step has of what its job has. Memory that it did not ask for is its share by CPUs; GRES that
// it did not ask for are all that its job has on its nodes.
func (r *StepRow) size() size {
	st := r.Step
	z := size{nodes: int32(len(st.Nodes)), cpus: st.CPUs}
	if st.Mem > 0 || len(st.Gres) > 0 || len(st.Units) > 0 {
		z.mem = st.Mem
		for _, g := range st.Gres {
			z.add(g.Name, g.Count)
		}
		return z
	}
	if r.Job.Alloc == nil { // a record of a server that did not write it down
		return z
	}
	places := core.NodePlaces{List: r.Job.Alloc.Nodes}
	asked := false
	for i := range st.Holds {
		asked = asked || len(st.Holds[i].Gres) > 0
	}
	for i, name := range st.Nodes {
		at := places.Of(name)
		if at < 0 {
			continue
		}
		node := &r.Job.Alloc.Nodes[at]
		mem, gres := node.Mem, node.Gres
		if per := r.Job.Spec.Shape.MemPerCPU; per > 0 && len(st.Nodes) > 0 {
			mem = min(mem, per*core.Bytes(max(1, st.CPUs/int32(len(st.Nodes)))))
		}
		if i < len(st.Holds) && st.Holds[i].Mem > 0 {
			mem = st.Holds[i].Mem
		}
		if i < len(st.Holds) && asked {
			gres = st.Holds[i].Gres
		}
		z.mem += mem
		for _, g := range gres {
			z.add(g.Name, int64(len(g.Units)))
		}
	}
	return z
}

// gresPerNode is what it has on each of its nodes, as --gres would ask for it; empty: none.
func (r *StepRow) gresPerNode() string {
	z := r.size()
	var words []string
	for _, name := range sortedKeys(z.gres) {
		words = append(words, fmt.Sprintf("gres:%s:%d", name, z.gres[name]/int64(max(1, z.nodes))))
	}
	return strings.Join(words, ",")
}

// distribution is how its tasks lie on its nodes: Cyclic, Block, CBlock, Block,Pack, …
func (r *StepRow) distribution() string {
	given, pack, _ := strings.Cut(r.Step.Options.Distribution, ",")
	if given == "pack" || given == "nopack" {
		given, pack = "", given
	}
	return distributionName(given, r.Tasks() <= int32(len(r.Step.Nodes))) + map[string]string{
		"pack": ",Pack", "nopack": ",NoPack",
	}[strings.ToLower(pack)]
}

func distributionName(given string, sparse bool) string {
	given, _, _ = strings.Cut(strings.ToLower(given), "=")
	levels := strings.Split(given, ":")
	first := map[string]string{
		"": "Block", "*": "Block", "block": "Block", "cyclic": "Cyclic", "arbitrary": "arbitrary", "plane": "Plane",
	}[levels[0]]
	switch {
	case given == "" && sparse:
		return "Cyclic"
	case first == "":
		return "Block" // nothing else is accepted
	case len(levels) == 1:
		return first
	}
	name, last := first[:1], "Cyclic"
	for _, level := range levels[1:min(3, len(levels))] {
		if word := map[string]string{"block": "Block", "cyclic": "Cyclic", "fcyclic": "FCyclic"}[level]; word != "" {
			last = word // else it is as the level before it
		}
		name += last
	}
	return name
}

// ShowStep prints a step as scontrol show step does.
func ShowStep(r *StepRow, o ShowOptions) string {
	nodes, tres, freq, srun, perNode := int32(1), "(null)", "CPUFreqReq=Default", "SrunHost:Pid=(null):0", ""
	cpus := int32(0)
	if st := r.Step; st != nil {
		z := r.size()
		nodes, cpus, tres, perNode = z.nodes, z.cpus, z.stepTRES(), r.gresPerNode()
		freq += " Dist=" + r.distribution()
		srun = fmt.Sprintf("SrunHost:Pid=%s:%d", orNull(st.Options.Host), st.Options.PID)
	}
	lines := []string{
		fmt.Sprintf("StepId=%s UserId=%d StartTime=%s TimeLimit=%s", r.ID(), r.Job.Spec.UID,
			TimeText(r.start(), "Unknown"), r.limit(grammar.FormatClockLimit)),
		fmt.Sprintf("State=%s Partition=%s NodeList=%s", r.State(), partitionOf(&r.Job.Job), r.NodeList()),
		fmt.Sprintf("Nodes=%d CPUs=%d Tasks=%d Name=%s Network=(null)", nodes, cpus, r.Tasks(), r.Title()),
		"TRES=" + tres,
		"ResvPorts=(null)",
		freq,
		srun,
	}
	if perNode != "" {
		lines = append(lines, "TresPerNode="+perNode)
	}
	return block(lines, o.OneLine)
}
