package config

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

// resourceReader reads resources.
type resourceReader struct{ *reader }

// resourcesOf reads the key `resources`, which must not be null; absent is the default.
func (r resourceReader) resourcesOf(f *fields) Resources {
	n, p := f.get("resources")
	if n == nil {
		return DefaultResources()
	}
	v, _ := r.resources(n, p)
	return v
}

func (r resourceReader) resources(n *tree.Node, p *path) (Resources, bool) {
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
func (r resourceReader) size(n *tree.Node, p *path) (Float, bool) {
	switch n.Form {
	case tree.Bool, tree.Int, tree.Real:
		if v, ok := (&reader{}).number(n, p); ok && !math.IsNaN(v) {
			return Float(v), true
		}
	case tree.Text:
		if v, ok := sizeText(n.Text); ok {
			return v, true
		}
	default: // refused or read below
	}
	r.fail(n, p, typeValue, "must be a size such as 8GB, 512MB or 1TB, not %s", n.Describe())
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
func (r resourceReader) sizes(n *tree.Node, p *path) (SizeRange, bool) {
	lo, hi, ok := rangeOf(r.reader, n, p, r.size, sizeText)
	return SizeRange{lo, hi}, ok
}

// counts reads a range of whole numbers.
func (r resourceReader) counts(n *tree.Node, p *path) (Range, bool) {
	lo, hi, ok := rangeOf(r.reader, n, p, r.integer, tree.Whole)
	return Range{lo, hi}, ok
}

// rangeOf reads n, a..b, a.., ..b and {min, max}. Each end is read by one, or by short in a text.
func rangeOf[T int64 | Float](
	r *reader, n *tree.Node, p *path, one func(*tree.Node, *path) (T, bool), short func(string) (T, bool),
) (lo, hi *T, ok bool) {
	switch {
	case n.Form == tree.Mapping:
		f := &fields{r: r, n: n, p: p}
		before := len(r.faults)
		lo, hi = opt(f, "min", one), opt(f, "max", one)
		f.done()
		if len(r.faults) > before {
			return nil, nil, false
		}
	case n.Form == tree.Text && strings.Contains(n.Text, ".."):
		left, right, _ := strings.Cut(n.Text, "..")
		for side, end := range map[string]**T{left: &lo, right: &hi} {
			if strings.TrimSpace(side) == "" {
				continue
			}
			v, good := short(side)
			if !good {
				r.fail(n, p, typeValue, "%s in the range %s is not valid", tree.Quote(strings.TrimSpace(side)), tree.Quote(n.Text))
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
func (r resourceReader) cpu(n *tree.Node, p *path) CPU {
	out := CPU{Count: from(2)}
	switch {
	case n.Form == tree.Mapping && (n.Get("min") != nil || n.Get("max") != nil):
		out.Count, _ = r.counts(n, p)
	case n.Form == tree.Mapping:
		f := &fields{r: r.reader, n: n, p: p}
		out.Arch = opt(f, "arch", r.arch)
		if v, p := f.get("count"); v != nil {
			out.Count, _ = r.counts(v, p)
		}
		f.done()
	case n.Form == tree.Null || n.Form == tree.List || n.Form == tree.Time:
		r.fail(n, p, typeMapping, "must be a count such as 4, 2..8 or arm:4, not %s", n.Describe())
	default:
		r.cpuText(n, p, &out)
	}
	if lo := out.Count.Min; lo != nil && *lo < 0 || out.Count.Max != nil && *out.Count.Max < 0 {
		r.fail(n, p, typeValue, "must not be negative")
	}
	return out
}

func (r resourceReader) arch(n *tree.Node, p *path) (string, bool) {
	if n.Form == tree.Text && slices.Contains(arches, strings.ToLower(n.Text)) {
		return strings.ToLower(n.Text), true
	}
	r.oneOf(n, p, arches)
	return "", false
}

// cpuText reads tokens joined by colons: an architecture, a count or range, each at most once.
func (r resourceReader) cpuText(n *tree.Node, p *path, out *CPU) {
	counted := false
	for _, token := range strings.Split(n.Plain(), ":") {
		token = strings.TrimSpace(token)
		lower := strings.ToLower(token)
		isArch := slices.Contains(arches, lower)
		switch {
		case token == "":
			r.fail(n, p, typeValue, "%s has an empty part", tree.Quote(n.Plain()))
		case isArch && out.Arch != nil:
			r.fail(n, p, typeValue, "%s names two architectures", tree.Quote(n.Plain()))
		case isArch:
			out.Arch = &lower
			continue
		case counted:
			r.fail(n, p, typeValue, "%s gives two counts", tree.Quote(n.Plain()))
		default:
			quiet := resourceReader{&reader{}}
			part := &tree.Node{Form: tree.Text, Text: token, Line: n.Line, Column: n.Column}
			v, ok := quiet.counts(part, p)
			if low, high, found := strings.Cut(token, ".."); !ok && found && isBelow(high, low) {
				r.fail(n, p, typeValue, "%s is empty: it begins at %s and ends at %s; write %s..%s", tree.Quote(token), low,
					high, high, low)
				return
			}
			if !ok || strings.Contains(token, "_") {
				r.fail(n, p, typeValue, "%s is neither a count such as 4 or 2..8 nor x86 or arm", tree.Quote(token))
				return
			}
			out.Count, counted = v, true
			continue
		}
		return
	}
}

// isBelow reports whether a text is a smaller count than another.
func isBelow(a, b string) bool {
	x, err := strconv.Atoi(strings.TrimSpace(a))
	y, err2 := strconv.Atoi(strings.TrimSpace(b))
	return err == nil && err2 == nil && x < y
}

// gpu reads the short form or the mapping.
func (r resourceReader) gpu(n *tree.Node, p *path) (out GPU, ok bool) {
	out.Count = from(1)
	switch n.Form {
	case tree.Mapping:
		return r.gpuMapping(n, p)
	case tree.List, tree.Time:
		r.fail(n, p, typeMapping, "must be a count, a text such as A100:80GB:2 or a mapping, not %s", n.Describe())
		return out, false
	default: // refused or read below
	}
	g, err := grammar.ParseGPU(n.Plain())
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

func (r resourceReader) gpuMapping(n *tree.Node, p *path) (out GPU, ok bool) {
	out.Count = from(1)
	f := &fields{r: r.reader, n: n, p: p}
	out.Vendor = opt(f, "vendor", r.vendor)
	if v, vp := f.get("name"); v != nil && v.Form == tree.List {
		out.Name = f.texts("name")
		for i, s := range out.Name {
			out.Name[i] = stripTPU(s)
		}
	} else if v != nil && v.Form != tree.Null {
		if s, ok := r.text(v, vp); ok {
			out.Name = []string{stripTPU(s)}
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

// stripTPU drops the old prefix of Google's names.
func stripTPU(s string) string {
	if len(s) > 4 && strings.EqualFold(s[:4], "tpu-") {
		return s[4:]
	}
	return s
}

func (r resourceReader) vendor(n *tree.Node, p *path) (string, bool) {
	if n.Form == tree.Text {
		switch w := strings.ToLower(n.Text); w {
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
func (r resourceReader) capability(n *tree.Node, p *path) (out [2]int, ok bool) {
	if n.Form == tree.List && len(n.Items) == 2 {
		a, ok1 := n.Items[0].Whole()
		b, ok2 := n.Items[1].Whole()
		if ok1 && ok2 {
			return [2]int{int(a), int(b)}, true
		}
	}
	if n.Form == tree.Real || n.Form == tree.Text {
		major, minor, cut := strings.Cut(n.Plain(), ".")
		a, ok1 := tree.Whole(major)
		b, ok2 := tree.Whole(minor)
		if cut && ok1 && ok2 {
			return [2]int{int(a), int(b)}, true
		}
	}
	r.fail(n, p, typeValue, "must be a compute capability such as 8.0, not %s", n.Describe())
	return out, false
}

// disk reads a size, a range of sizes or {size}.
func (r resourceReader) disk(n *tree.Node, p *path) (Disk, bool) {
	if n.Form == tree.Mapping && n.Get("min") == nil && n.Get("max") == nil {
		f := &fields{r: r.reader, n: n, p: p}
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
