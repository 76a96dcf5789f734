package scontrol

import (
	"encoding"
	"math"
	"strconv"
	"strings"
	"sync"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
)

// asks are the keys that change what a job asks for; each puts its value into the update, and reports whether it could.
var asks = sync.OnceValue(func() map[string]func(v string, u *client.Update) bool {
	return map[string]func(v string, u *client.Update) bool{
		"admincomment":      func(v string, u *client.Update) bool { return text(&u.AdminComment, v) },
		"contiguous":        func(v string, u *client.Update) bool { return flag(&u.Contiguous, v) },
		"delayboot":         delayBoot,
		"mintmpdisknode":    func(v string, u *client.Update) bool { return memory(&u.TmpDisk, v) },
		"nodelist":          nodeList,
		"oversubscribe":     func(v string, u *client.Update) bool { return flag(&u.OverSubscribe, v) },
		"reboot":            reboot,
		"reqcores":          func(v string, u *client.Update) bool { return count(&u.Cores, v, 0) },
		"reqsockets":        func(v string, u *client.Update) bool { return count(&u.Sockets, v, 0) },
		"reqthreads":        func(v string, u *client.Update) bool { return count(&u.Threads, v, 0) },
		"stdout":            func(v string, u *client.Update) bool { return text(&u.Stdout, v) },
		"tresperjob":        func(v string, u *client.Update) bool { return tresPer(&u.GPUs, v) },
		"trespernode":       func(v string, u *client.Update) bool { return tresPer(&u.Gres, v) },
		"wckey":             func(v string, u *client.Update) bool { return text(&u.WCKey, v) },
		"workdir":           func(v string, u *client.Update) bool { return text(&u.WorkDir, v) },
		"account":           func(v string, u *client.Update) bool { return text(&u.Project, v) && v != "" },
		"arraytaskthrottle": func(v string, u *client.Update) bool { return count(&u.Throttle, v, 0) },
		"cpuspertask":       func(v string, u *client.Update) bool { return count(&u.CPUsPerTask, v, 1) },
		"excnodelist":       func(v string, u *client.Update) bool { return text(&u.Exclude, v) },
		"features":          func(v string, u *client.Update) bool { return parse(&u.Constraint, v) },
		"gres":              gres,
		"mincpusnode":       func(v string, u *client.Update) bool { return count(&u.MinCPUs, v, 0) },
		"minmemorycpu":      func(v string, u *client.Update) bool { return memory(&u.MemPerCPU, v) },
		"minmemorynode":     func(v string, u *client.Update) bool { return memory(&u.MemPerNode, v) },
		"numcpus":           func(v string, u *client.Update) bool { return count(&u.CPUs, v, 1) },
		"numnodes":          nodeCount,
		"numtasks":          func(v string, u *client.Update) bool { return count(&u.Tasks, v, 1) },
		"prefer":            func(v string, u *client.Update) bool { return parse(&u.Prefer, v) },
		"reqnodelist":       func(v string, u *client.Update) bool { return text(&u.NodeList, v) },
		"requeue":           mayRequeue,
		"switches":          func(v string, u *client.Update) bool { return parse(&u.Switches, v) },
		"taskspernode":      func(v string, u *client.Update) bool { return count(&u.TasksPerNode, v, 0) },
	}
})

// ask reads one of them; known is false for any other key.
func ask(p *pair, u *client.Update) (known, ok bool) {
	put, known := asks()[p.key]
	return known, known && p.sign == 0 && put(p.value, u)
}

func text[T ~string](to **T, v string) bool {
	t := T(v)
	*to = &t
	return true
}

// parse keeps what does not parse: the server refuses it in its own words.
func parse[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](to **T, v string) bool {
	*to = new(T)
	return P(*to).UnmarshalText([]byte(v)) == nil
}

func count(to **int32, v string, least int64) bool {
	n, err := strconv.ParseInt(v, 10, 32)
	n32 := int32(n)
	*to = &n32
	return err == nil && n >= least
}

func memory(to **core.Bytes, v string) bool {
	mib, err := grammar.ParseMemory(v)
	b := core.Bytes(mib) * core.MiB
	*to = &b
	return err == nil && mib <= math.MaxInt64/int64(core.MiB)
}

func nodeCount(v string, u *client.Update) bool {
	c, err := grammar.ParseNodeCount(v)
	u.Nodes = &core.NodeCount{Min: int32(c.Min), Max: int32(c.Max)}
	return err == nil && c.Min > 0
}

// flag reads YES, NO, 1 or 0.
func flag(to **bool, v string) bool {
	yes := v == "1" || strings.EqualFold(v, "yes")
	*to = &yes
	return yes || v == "0" || strings.EqualFold(v, "no")
}

// nodeList is of a waiting job the nodes that it must have, and of one that runs those it keeps; empty: as it is.
func nodeList(v string, u *client.Update) bool {
	if v == "" {
		return true
	}
	return text(&u.NodeList, v)
}

func delayBoot(v string, u *client.Update) bool {
	m, err := grammar.ParseTimeLimit(v)
	return err == nil && text(&u.DelayBoot, strconv.FormatInt(m, 10))
}

func reboot(v string, u *client.Update) bool {
	var yes *bool
	if !flag(&yes, v) {
		return false
	}
	if !*yes {
		return text(&u.Reboot, "")
	}
	return text(&u.Reboot, "1")
}

// tresPer reads gres:gpu:2, or gpu:2.
func tresPer(to **[]core.Gres, v string) bool {
	words := strings.Split(v, ",")
	for i := range words {
		words[i] = strings.TrimPrefix(words[i], "gres:")
	}
	var u client.Update
	ok := gres(strings.Join(words, ","), &u)
	*to = u.Gres
	return ok
}

func mayRequeue(v string, u *client.Update) bool {
	yes := v == "1" || strings.EqualFold(v, "yes")
	u.SpecChange.Requeue = &yes
	return yes || v == "0" || strings.EqualFold(v, "no")
}

func gres(v string, u *client.Update) bool {
	asked := []core.Gres{} // not nil, which would change nothing
	if v == "" {
		v = "none"
	}
	list, err := grammar.ParseGRES(v)
	for _, g := range list {
		if g.Count > 0 {
			asked = append(asked, core.Gres{Name: g.Name, Type: g.Type, Count: g.Count})
		}
	}
	u.Gres = &asked
	return err == nil
}
