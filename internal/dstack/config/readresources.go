package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/grammar"
)

// resourcesOf reads the key `resources`, which must not be null; absent is the default.
func (r *reader) resourcesOf(f *fields) Resources {
	n, p := f.get("resources")
	if n == nil {
		return DefaultResources()
	}
	v, _ := r.resources(n, p)
	return v
}

func (r *reader) resources(n *node, p *path) (Resources, bool) {
	f := r.mapping(n, p, "a mapping with cpu, memory, gpu and disk")
	out := DefaultResources()
	if f == nil {
		return out, false
	}
	if v, p := f.get("cpu"); v != nil {
		out.CPU = r.cpu(v, p)
	}
	if v, p := f.get("memory"); v != nil {
		out.Memory, _ = r.sizes(v, p)
	}
	out.ShmSize = opt(f, "shm_size", r.size)
	if v, _ := f.get("gpu"); v != nil {
		out.GPU = opt(f, "gpu", r.gpu)
	}
	if v, _ := f.get("disk"); v != nil {
		out.Disk = opt(f, "disk", r.disk)
	}
	f.done()
	return out, true
}

// size reads GB: a number, or a text with MB, GB or TB.
func (r *reader) size(n *node, p *path) (Float, bool) {
	switch n.form {
	case isBool, isInt, isFloat:
		if v, ok := (&reader{}).number(n, p); ok && !math.IsNaN(v) {
			return Float(v), true
		}
	case isText:
		if v, ok := sizeText(n.text); ok {
			return v, true
		}
	}
	r.fail(n, p, typeValue, "must be a size such as 8GB, 512MB or 1TB, not %s", n.describe())
	return 0, false
}

func sizeText(s string) (Float, bool) {
	s = strings.TrimSpace(s)
	factor := 1.0
	if len(s) > 2 {
		unit := true
		switch strings.ToUpper(s[len(s)-2:]) {
		case "MB":
			factor = 1.0 / 1024
		case "GB":
		case "TB":
			factor = 1024
		default:
			unit = false
		}
		if unit {
			s = strings.TrimSpace(s[:len(s)-2])
		}
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || !plainNumber(s) || math.IsNaN(v) {
		return 0, false
	}
	return Float(v * factor), true
}

// sizes reads a range of sizes.
func (r *reader) sizes(n *node, p *path) (SizeRange, bool) {
	lo, hi, ok := rangeOf(r, n, p, r.size, sizeText)
	return SizeRange{lo, hi}, ok
}

// counts reads a range of whole numbers.
func (r *reader) counts(n *node, p *path) (Range, bool) {
	lo, hi, ok := rangeOf(r, n, p, r.integer, wholeText)
	return Range{lo, hi}, ok
}

// rangeOf reads n, a..b, a.., ..b and {min, max}. Each end is read by one, or by short in a text.
func rangeOf[T int64 | Float](
	r *reader, n *node, p *path, one func(*node, *path) (T, bool), short func(string) (T, bool),
) (lo, hi *T, ok bool) {
	switch {
	case n.form == isMapping:
		f := &fields{r: r, n: n, p: p}
		before := len(r.faults)
		lo, hi = opt(f, "min", one), opt(f, "max", one)
		f.done()
		if len(r.faults) > before {
			return nil, nil, false
		}
	case n.form == isText && strings.Contains(n.text, ".."):
		left, right, _ := strings.Cut(n.text, "..")
		for side, end := range map[string]**T{left: &lo, right: &hi} {
			if strings.TrimSpace(side) == "" {
				continue
			}
			v, good := short(side)
			if !good {
				r.fail(n, p, typeValue, "%s in the range %s is not valid", quoted(strings.TrimSpace(side)), quoted(n.text))
				return nil, nil, false
			}
			*end = &v
		}
		if left == right && lo == nil {
			lo = hi
		}
		if left == right && hi == nil {
			hi = lo
		}
	default:
		v, good := one(n, p)
		return &v, &v, good
	}
	switch {
	case lo == nil && hi == nil:
		r.fail(n, p, typeValue, "the range is empty; write such as 2, 2..4, 2.. or ..4")
		return nil, nil, false
	case lo != nil && hi != nil && *lo > *hi:
		r.fail(n, p, typeValue, "the range runs backwards: %v is more than %v", *lo, *hi)
		return nil, nil, false
	}
	return lo, hi, true
}

var arches = []string{"x86", "arm"}

// cpu reads N, N..M, ARCH:N, {arch, count}, and {min, max} of old clients.
func (r *reader) cpu(n *node, p *path) CPU {
	out := CPU{Count: from(2)}
	switch {
	case n.form == isMapping && (n.get("min") != nil || n.get("max") != nil):
		out.Count, _ = r.counts(n, p)
	case n.form == isMapping:
		f := &fields{r: r, n: n, p: p}
		out.Arch = opt(f, "arch", r.arch)
		if v, p := f.get("count"); v != nil {
			out.Count, _ = r.counts(v, p)
		}
		f.done()
	case n.form == isNull || n.form == isList || n.form == isTime:
		r.fail(n, p, typeMapping, "must be a count such as 4, 2..8 or arm:4, not %s", n.describe())
	default:
		r.cpuText(n, p, &out)
	}
	if lo := out.Count.Min; lo != nil && *lo < 0 || out.Count.Max != nil && *out.Count.Max < 0 {
		r.fail(n, p, typeValue, "must not be negative")
	}
	return out
}

func (r *reader) arch(n *node, p *path) (string, bool) {
	if n.form == isText && slices.Contains(arches, strings.ToLower(n.text)) {
		return strings.ToLower(n.text), true
	}
	r.oneOf(n, p, arches)
	return "", false
}

// cpuText reads tokens joined by colons: an architecture, a count or range, each at most once.
func (r *reader) cpuText(n *node, p *path, out *CPU) {
	counted := false
	for _, token := range strings.Split(n.plain(), ":") {
		token = strings.TrimSpace(token)
		lower := strings.ToLower(token)
		isArch := slices.Contains(arches, lower)
		switch {
		case token == "":
			r.fail(n, p, typeValue, "%s has an empty part", quoted(n.plain()))
		case isArch && out.Arch != nil:
			r.fail(n, p, typeValue, "%s names two architectures", quoted(n.plain()))
		case isArch:
			out.Arch = &lower
			continue
		case counted:
			r.fail(n, p, typeValue, "%s gives two counts", quoted(n.plain()))
		default:
			quiet := &reader{}
			part := &node{form: isText, text: token, line: n.line, col: n.col}
			v, ok := quiet.counts(part, p)
			if !ok {
				r.fail(n, p, typeValue, "%s is neither a count such as 4 or 2..8 nor x86 or arm", quoted(token))
				return
			}
			out.Count, counted = v, true
			continue
		}
		return
	}
}

// gpu reads the short form or the mapping.
func (r *reader) gpu(n *node, p *path) (out GPU, ok bool) {
	out.Count = from(1)
	switch n.form {
	case isMapping:
		return r.gpuMapping(n, p)
	case isList, isTime:
		r.fail(n, p, typeMapping, "must be a count, a text such as A100:80GB:2 or a mapping, not %s", n.describe())
		return out, false
	}
	g, err := grammar.ParseGPU(n.plain())
	if err != nil {
		r.fail(n, p, typeValue, "%s", err.Error())
		return out, false
	}
	if g.Vendor != "" {
		out.Vendor = &g.Vendor
	}
	out.Name = g.Names
	out.Count = Range{wide(g.Count.Min), wide(g.Count.Max)}
	if g.Memory != nil {
		out.Memory = &SizeRange{float(g.Memory.Min), float(g.Memory.Max)}
	}
	return out, true
}

func wide(v *int) *int64 {
	if v == nil {
		return nil
	}
	w := int64(*v)
	return &w
}

func float(v *float64) *Float {
	if v == nil {
		return nil
	}
	f := Float(*v)
	return &f
}

var vendors = []string{"nvidia", "amd", "google", "intel", "tenstorrent"}

func (r *reader) gpuMapping(n *node, p *path) (out GPU, ok bool) {
	out.Count = from(1)
	f := &fields{r: r, n: n, p: p}
	out.Vendor = opt(f, "vendor", r.vendor)
	if v, vp := f.get("name"); v != nil && v.form == isList {
		out.Name = f.texts("name")
	} else if v != nil && v.form != isNull {
		if s, ok := r.text(v, vp); ok {
			out.Name = []string{s}
		}
	}
	if v, vp := f.get("count"); v != nil {
		out.Count, _ = r.counts(v, vp)
	}
	out.Memory, out.TotalMemory = opt(f, "memory", r.sizes), opt(f, "total_memory", r.sizes)
	out.ComputeCapability = opt(f, "compute_capability", r.capability)
	f.done()
	return out, true
}

func (r *reader) vendor(n *node, p *path) (string, bool) {
	if n.form == isText {
		switch w := strings.ToLower(n.text); w {
		case "tpu":
			return "google", true
		case "tt":
			return "tenstorrent", true
		default:
			if slices.Contains(vendors, w) {
				return w, true
			}
		}
	}
	r.oneOf(n, p, vendors)
	return "", false
}

// capability reads 7.5, "7.5" or [7, 5]; never a whole number, which could be either part.
func (r *reader) capability(n *node, p *path) (out [2]int, ok bool) {
	if n.form == isList && len(n.items) == 2 {
		a, ok1 := n.items[0].whole()
		b, ok2 := n.items[1].whole()
		if ok1 && ok2 {
			return [2]int{int(a), int(b)}, true
		}
	}
	if n.form == isFloat || n.form == isText {
		major, minor, cut := strings.Cut(n.plain(), ".")
		a, ok1 := wholeText(major)
		b, ok2 := wholeText(minor)
		if cut && ok1 && ok2 {
			return [2]int{int(a), int(b)}, true
		}
	}
	r.fail(n, p, typeValue, "must be a compute capability such as 8.0, not %s", n.describe())
	return out, false
}

// disk reads a size, a range of sizes or {size}.
func (r *reader) disk(n *node, p *path) (Disk, bool) {
	if n.form == isMapping && n.get("min") == nil && n.get("max") == nil {
		f := &fields{r: r, n: n, p: p}
		var d Disk
		if v, p := f.need("size"); v != nil {
			d.Size, _ = r.sizes(v, p)
		}
		f.done()
		return d, true
	}
	v, ok := r.sizes(n, p)
	return Disk{v}, ok
}
