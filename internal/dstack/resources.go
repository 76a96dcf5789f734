package dstack

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"bireme.dev/bireme/internal/core"
)

var resourceKeys = map[string]readKey{
	"cpu":      (*reader).cpu,
	"memory":   (*reader).memory,
	"gpu":      (*reader).gpu,
	"disk":     (*reader).disk,
	"shm_size": inContainer((*reader).shmSize),
}

func (r *reader) resources(n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a mapping, not %s", kindOf(n))
		return
	}
	r.mapping(n, path, resourceKeys)
}

func (r *reader) cpu(n *yaml.Node, path string) {
	const noArch = "choosing the architecture is planned for 0.4"
	count, countPath := n, path
	switch {
	case n.Kind == yaml.MappingNode:
		if isRangeMap(n) {
			break
		}
		count = nil
		for _, e := range r.entries(n, path) {
			switch p := join(path, e.key.Value); e.key.Value {
			case "count":
				count, countPath = e.value, p
			case "arch":
				if !isNull(e.value) {
					r.add(e.value, p, "%s", noArch)
				}
			default:
				r.unknown(e.key, p, []string{"arch", "count"})
			}
		}
		if count == nil {
			return
		}
	case n.Kind == yaml.ScalarNode && strings.Contains(n.Value, ":"), n.Kind == yaml.ScalarNode && n.Value != "" &&
		isLetter(n.Value[0]):
		c, err := parseCPU(n.Value)
		switch {
		case err != nil:
			r.add(n, path, "%s", err.Error())
		case c.arch != "":
			r.add(n, path, "%s", noArch)
		default:
			r.setCPUs(c.count)
		}
		return
	}
	if sp, ok := r.counts(count, countPath); ok {
		r.setCPUs(sp)
	}
}

func (r *reader) setCPUs(sp span[int64]) {
	if sp.hasMin {
		r.task.CPUs = int32(sp.min)
	}
}

// isRangeMap reports whether a mapping is {min, max}.
func isRangeMap(n *yaml.Node) bool {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if k := n.Content[i].Value; k == "min" || k == "max" {
			return true
		}
	}
	return false
}

// rangeText turns n, whether scalar or {min, max}, into the short form "a..b".
func (r *reader) rangeText(n *yaml.Node, path string) (string, bool) {
	if n.Kind == yaml.ScalarNode && !isNull(n) && !plainBoolean(n) {
		return n.Value, true
	}
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "must be a number, a range such as 2..8, or {min, max}, not %s", kindOf(n))
		return "", false
	}
	ends := map[string]string{}
	good := true
	for _, e := range r.entries(n, path) {
		p := join(path, e.key.Value)
		switch {
		case e.key.Value != "min" && e.key.Value != "max":
			r.unknown(e.key, p, []string{"min", "max"})
			good = false
		case isNull(e.value):
		case e.value.Kind != yaml.ScalarNode:
			r.add(e.value, p, "must be a number, not %s", kindOf(e.value))
			good = false
		default:
			ends[e.key.Value] = e.value.Value
		}
	}
	return ends["min"] + ".." + ends["max"], good
}

func (r *reader) counts(n *yaml.Node, path string) (span[int64], bool) {
	s, ok := r.rangeText(n, path)
	if !ok {
		return span[int64]{}, false
	}
	sp, err := parseSpan(s, parseCount, lessInt)
	if err != nil {
		r.add(n, path, "%s", err.Error())
	}
	return sp, err == nil
}

func (r *reader) sizes(n *yaml.Node, path string) (span[core.Bytes], bool) {
	s, ok := r.rangeText(n, path)
	if !ok {
		return span[core.Bytes]{}, false
	}
	sp, err := parseSizes(s)
	if err != nil {
		r.add(n, path, "%s", err.Error())
	}
	return sp, err == nil
}

func (r *reader) memory(n *yaml.Node, path string) {
	if sp, ok := r.sizes(n, path); ok && sp.hasMin {
		r.task.Memory = sp.min
	}
}

func (r *reader) disk(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	if n.Kind == yaml.MappingNode && !isRangeMap(n) {
		for _, e := range r.entries(n, path) {
			if p := join(path, e.key.Value); e.key.Value == "size" {
				r.disk(e.value, p)
			} else {
				r.unknown(e.key, p, []string{"size"})
			}
		}
		return
	}
	if sp, ok := r.sizes(n, path); ok && sp.hasMin {
		r.task.Disk = sp.min
	}
}

func (r *reader) gpu(n *yaml.Node, path string) {
	if isNull(n) {
		return
	}
	var g gpuSpec
	switch n.Kind {
	case yaml.ScalarNode:
		var err error
		if g, err = parseGPU(n.Value); err != nil {
			r.add(n, path, "%s", err.Error())
			return
		}
	case yaml.MappingNode:
		var ok bool
		if g, ok = r.gpuMap(n, path); !ok {
			return
		}
	default:
		r.add(n, path, "must be a number, text such as A100:2, or a mapping, not %s", kindOf(n))
		return
	}
	count := int64(1) // written without a count: one or more
	if g.given {
		count = g.count.min
	}
	r.task.GPUs = core.Gres{Name: "gpu", Count: count}
	ask := core.GPUAsk{Vendor: g.vendor, Names: g.names}
	if g.able > 0 {
		ask.Capability = g.able
	}
	if g.memory != "" {
		sp, err := parseSizes(g.memory)
		if err != nil {
			r.add(n, path, "%s", err.Error())
			return
		}
		if sp.hasMin {
			ask.MemMin = sp.min
		}
		if sp.hasMax {
			ask.MemMax = sp.max
		}
	}
	r.task.GPUs.Count = g.share(&ask, count)
	switch {
	case len(g.names) == 1 && ask.Vendor == "" && ask.MemMin+ask.MemMax == 0 && ask.Capability == 0:
		// GRES types are lower case by custom, dstack's GPU names upper case.
		r.task.GPUs.Type = strings.ToLower(g.names[0])
	case len(g.names) > 0 || ask.Vendor != "" || ask.MemMin+ask.MemMax > 0 || ask.Capability > 0:
		r.task.GPUAsk = &ask
	}
}

func (r *reader) gpuMap(n *yaml.Node, path string) (gpuSpec, bool) {
	var g gpuSpec
	before := len(r.list)
	for _, e := range r.entries(n, path) {
		p := join(path, e.key.Value)
		switch {
		case isNull(e.value):
		case e.key.Value == "name":
			names := []*yaml.Node{e.value}
			if e.value.Kind == yaml.SequenceNode {
				names, _ = r.items(e.value, p)
			}
			for _, item := range names {
				if s, ok := r.text(item, p); ok {
					g.names = append(g.names, strings.TrimSpace(s))
				}
			}
		case e.key.Value == "count":
			if sp, ok := r.counts(e.value, p); ok {
				g.count, g.given = sp, true
			}
		case e.key.Value == "vendor":
			if s, ok := r.text(e.value, p); ok {
				if g.vendor = gpuVendors[strings.ToLower(s)]; g.vendor == "" {
					r.add(e.value, p, "%q is none of nvidia, amd, google, intel and tenstorrent", s)
				}
			}
		case e.key.Value == "memory":
			if s, ok := r.rangeText(e.value, p); ok {
				g.memory = s
			}
		case e.key.Value == "total_memory":
			if sp, ok := r.sizes(e.value, p); ok {
				g.total = sp
			}
		case e.key.Value == "compute_capability":
			g.able = r.capability(e.value, p)
		default:
			r.unknown(e.key, p, []string{"vendor", "name", "count", "memory", "total_memory", "compute_capability"})
		}
	}
	return g, len(r.list) == before
}

// share divides what all GPUs are to have together among them: of a count that may grow, so many are asked for that
// each needs no more than its own least memory. It gives the count.
func (g *gpuSpec) share(ask *core.GPUAsk, count int64) int64 {
	if g.total.hasMin && ask.MemMin > 0 && count > 0 {
		need := int64((g.total.min + ask.MemMin - 1) / ask.MemMin)
		if most := g.count.max; g.given && g.count.hasMax {
			need = min(need, most)
		}
		count = max(count, need)
	}
	if n := core.Bytes(max(1, count)); g.total.hasMin {
		ask.MemMin = max(ask.MemMin, (g.total.min+n-1)/n)
	}
	if n := core.Bytes(max(1, count)); g.total.hasMax {
		if each := g.total.max / n; ask.MemMax == 0 || each < ask.MemMax {
			ask.MemMax = each
		}
	}
	return count
}

// capability reads 7.5, "7.5" or [7, 5], ten times; never a whole number, which could be either part.
func (r *reader) capability(n *yaml.Node, path string) int32 {
	text := n.Value
	if n.Kind == yaml.SequenceNode && len(n.Content) == 2 {
		text = n.Content[0].Value + "." + n.Content[1].Value
	}
	major, minor, ok := strings.Cut(text, ".")
	a, err := strconv.ParseUint(major, 10, 8)
	b, err2 := strconv.ParseUint(minor, 10, 8)
	if !ok || err != nil || err2 != nil || b > 9 {
		r.add(n, path, "%q is not a compute capability, such as 8.0", clip(text))
		return 0
	}
	return int32(10*a + b)
}
