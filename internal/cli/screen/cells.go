package screen

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/wire"
)

// Wanted words what a run asks for: cpu=x86:4.. mem=16GB.. disk=100GB.. gpu=A100:80GB:2.
func Wanted(r *config.Resources) string {
	cpu := rangeText(r.CPU.Count)
	if r.CPU.Arch != nil {
		cpu = *r.CPU.Arch + ":" + cpu
	}
	parts := []string{"cpu=" + cpu, "mem=" + sizeText(r.Memory)}
	if r.Disk != nil {
		parts = append(parts, "disk="+sizeText(r.Disk.Size))
	}
	if g := r.GPU; g != nil {
		var of []string
		if g.Vendor != nil && len(g.Name) == 0 {
			of = append(of, *g.Vendor)
		}
		if len(g.Name) > 0 {
			of = append(of, strings.Join(g.Name, ","))
		}
		if g.Memory != nil {
			of = append(of, sizeText(*g.Memory))
		}
		parts = append(parts, "gpu="+strings.Join(append(of, rangeText(g.Count)), ":"))
	}
	return strings.Join(parts, " ")
}

// rangeText is a range as configurations write it: 2, 2.., ..4, 2..4.
func rangeText(r config.Range) string {
	text := func(p *int64) string {
		if p == nil {
			return ""
		}
		return strconv.FormatInt(*p, 10)
	}
	if r.Min != nil && r.Max != nil && *r.Min == *r.Max {
		return text(r.Min)
	}
	return text(r.Min) + ".." + text(r.Max)
}

func sizeText(r config.SizeRange) string {
	text := func(p *config.Float) string {
		if p == nil {
			return ""
		}
		return gigabytes(float64(*p))
	}
	if r.Min != nil && r.Max != nil && *r.Min == *r.Max {
		return text(r.Min)
	}
	return text(r.Min) + ".." + text(r.Max)
}

// gigabytes words a size of GB with at most one decimal: 11.8GB, 16GB; what is less than one is in MB.
func gigabytes(gb float64) string {
	if gb > 0 && gb < 1 {
		return strconv.FormatFloat(gb*1024, 'f', 0, 64) + "MB"
	}
	return strings.TrimSuffix(strconv.FormatFloat(gb, 'f', 1, 64), ".0") + "GB"
}

// Machine words what a machine, or a part of it, has: cpu=4 mem=16GB disk=100GB gpu=A100:80GB:2.
func Machine(r *wire.InstanceResources) string {
	cpu := strconv.Itoa(int(r.CPUs))
	if r.CPUArch != nil {
		cpu = *r.CPUArch + ":" + cpu
	}
	parts := []string{"cpu=" + cpu, "mem=" + gigabytes(float64(r.MemoryMiB)/1024)}
	if r.Disk.SizeMiB > 0 {
		parts = append(parts, "disk="+gigabytes(float64(r.Disk.SizeMiB)/1024))
	}
	if g := GPUs(r.GPUs); g != "" {
		parts = append(parts, "gpu="+g)
	}
	return strings.Join(parts, " ")
}

// GPUs words equal GPUs together: A100:80GB:2.
func GPUs(list []wire.InstanceGPU) string {
	var out []string
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n] == list[i] {
			n++
		}
		text := list[i].Name
		if mem := list[i].MemoryMiB; mem > 0 {
			text += ":" + gigabytes(float64(mem)/1024)
		}
		out = append(out, fmt.Sprintf("%s:%d", text, n))
		i += n
	}
	return strings.Join(out, ",")
}

// Backend words where a machine comes from: ssh (remote).
func Backend(backend, region string) string {
	if backend == wire.BackendRemote {
		backend = "ssh"
	}
	if region == "" {
		return backend
	}
	return backend + " (" + region + ")"
}

// Price words an amount of dollars an hour with at most four decimals: $0.5.
func Price(d wire.Dollars) string {
	text := strconv.FormatFloat(float64(d), 'f', 4, 64)
	return "$" + strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Duration words seconds in the largest unit that divides them: 90s, 5m, 2h, 1d.
func Duration(s int64) string {
	for _, u := range []struct {
		unit string
		size int64
	}{{"w", 7 * 86400}, {"d", 86400}, {"h", 3600}, {"m", 60}} {
		if s > 0 && s%u.size == 0 {
			return strconv.FormatInt(s/u.size, 10) + u.unit
		}
	}
	return strconv.FormatInt(s, 10) + "s"
}

// Ago words how long something is past: now, 12 sec ago, 3 mins ago, yesterday, 2 days ago.
func Ago(text string, now time.Time) string {
	t, ok := wire.ParseTime(text)
	if !ok {
		return ""
	}
	s := int64(now.Sub(t.Go()) / time.Second)
	plural := func(n int64, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, unit)
	}
	switch {
	case s < 10:
		return "now"
	case s < 60:
		return fmt.Sprintf("%d sec ago", s)
	case s < 3600:
		return plural(s/60, "min")
	case s < 86400:
		return plural(s/3600, "hour")
	case s < 2*86400:
		return "yesterday"
	case s < 14*86400:
		return plural(s/86400, "day")
	}
	return plural(s/(7*86400), "week")
}
