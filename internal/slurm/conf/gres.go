package conf

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/config"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/hostlist"
)

// selectParameters reads what is given whole. CR_CPU too gives no core to two jobs where a node tells of its cores.
func selectParameters(v *converter, s Setting) error {
	v.cfg.Scheduling.SelectAs = strings.ToUpper(s.Value)
	for word := range strings.SplitSeq(strings.ToUpper(s.Value), ",") {
		switch strings.TrimSuffix(word, "_MEMORY") {
		case "CR_CPU", "CR_CORE":
			v.cfg.Scheduling.Select = "core"
		case "CR_SOCKET":
			v.cfg.Scheduling.Select = "socket"
		case "CR_MEMORY", "CR_CORE_DEFAULT_DIST_BLOCK":
		default:
			v.note(s.Where, s.Key, word, notYet)
		}
	}
	return nil
}

// placed adds to a node's generic resources where gres.conf says they are: at the socket of their cores, and joined by
// their links.
func (v *converter) placed(n *config.Node, names []string) []string {
	kinds, _, err := config.ParseUnits(n.Gres...)
	if err != nil || len(kinds) == 0 {
		return n.Gres
	}
	var units []core.Unit
	var links [][]int
	for i := range v.conf.Gres {
		r := &v.conf.Gres[i]
		if where, ok := r.Get("NodeName"); ok {
			list, err := hostlist.Expand(where, 1<<20)
			if err != nil || !slices.Contains(list, names[0]) {
				continue
			}
		}
		u, many, join := v.gresLine(r, n)
		for range many {
			u.Index = int32(len(units))
			units, links = append(units, u), append(links, join)
		}
	}
	var out []string
	for k, g := range kinds {
		mine := slices.DeleteFunc(slices.Clone(units), func(u core.Unit) bool {
			return u.Name != g.Name || u.Type != "" && u.Type != g.Type
		})
		if int64(len(mine)) != g.Count || !slices.ContainsFunc(mine, func(u core.Unit) bool {
			return u.Socket > 0 || links[u.Index] != nil
		}) {
			out = append(out, n.Gres[k])
			continue
		}
		name := g.Name
		if g.Type != "" {
			name += ":" + g.Type
		}
		for i, u := range mine {
			out = append(out, fmt.Sprintf("%s:1@%d/%d", name, u.Socket, joined(mine, links, i)))
		}
	}
	return out
}

// gresLine reads a line: what unit it is about, how many of them, and how each is linked to all of its name.
func (v *converter) gresLine(r *Record, n *config.Node) (u core.Unit, many int, links []int) {
	u.Name, many = r.Name, 1
	u.Type, _ = r.Get("Type")
	if files, ok := r.Get("File"); ok {
		if list, err := hostlist.Expand(files, 1<<12); err == nil {
			many = len(list)
		}
	}
	if count, ok := r.Get("Count"); ok {
		if x, err := integer(count, 1<<12); err == nil {
			many = int(x)
		}
	}
	if cores, ok := r.Get("Cores"); ok && n.Cores > 0 {
		first := cores[:max(0, strings.IndexFunc(cores+"-", func(c rune) bool { return c < '0' || c > '9' }))]
		if c, err := strconv.Atoi(first); err == nil {
			u.Socket = int32(c)/n.Cores + 1
		}
	}
	if text, ok := r.Get("Links"); ok && text != "" {
		for word := range strings.SplitSeq(text, ",") {
			x, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil {
				v.fault(r.Where, "Links=%s: expected numbers with commas", text)
				return u, many, nil
			}
			links = append(links, x)
		}
	}
	return u, many, links
}

// joined is the number, from 1, of the set that links join a unit to: the position of the first of it. 0: to none.
func joined(units []core.Unit, links [][]int, i int) int {
	set, own := i, links[units[i].Index]
	for k := range units {
		if k < len(own) && own[k] > 0 {
			set = min(set, k)
		}
	}
	if len(own) == 0 || !slices.ContainsFunc(own, func(x int) bool { return x > 0 }) {
		return 0
	}
	return set + 1
}

// devices finds out whether GPUs are real: files that are no devices stand for GPUs that are only counted.
func (v *converter) devices() {
	named, real := false, false
	for i := range v.conf.Gres {
		r := &v.conf.Gres[i]
		files, ok := r.Get("File")
		if !ok || r.Name != "gpu" {
			continue
		}
		list, err := hostlist.Expand(files, 1<<12)
		named = named || err == nil
		for _, name := range list {
			info, err := os.Stat(name)
			real = real || err == nil && info.Mode()&os.ModeDevice != 0
		}
	}
	v.cfg.Step.CountedGPUs = named && !real
}
