package slurm

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Resource limits of the submitting process travel in the job's environment, as Slurm's own do: jobs of one shell have
// one environment, so they cost no room in each job. The server takes them out again before a launch.

// limitPrefix begins the variables that carry limits; a value that the user asked for with --propagate has a U before
// it.
const limitPrefix = "SLURM_RLIMIT_"

// RlimitNames are the limits --propagate knows, in the order Slurm handles them.
var RlimitNames = []string{"CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"}

// passed is what --propagate says of the limits that jobs get from the submitting process; empty: nothing.
type passed string

// vars are the variables for a process's limits: those that --propagate names, or all of them.
func (l passed) vars(p Process) []string {
	var out []string
	asked := ""
	if l != "" {
		asked = "U"
	}
	for _, name := range RlimitNames {
		if value, ok := p.Limits[name]; ok && (l == "" || l.has(name)) {
			out = append(out, limitPrefix+name+"="+asked+strconv.FormatUint(value, 10))
		}
	}
	return out
}

func (l passed) has(name string) bool {
	for w := range strings.SplitSeq(string(l), ",") {
		switch strings.TrimPrefix(w, "RLIMIT_") {
		case "ALL", name:
			return true
		}
	}
	return false
}

// LimitLines are the limits of a process as -vv shows them.
func LimitLines(p Process) []string {
	list := passed("").vars(p)
	for i := range list {
		list[i] = strings.TrimPrefix(list[i], "SLURM_")
	}
	return list
}

// withoutLimits drops variables that carry limits: a process inside a job may see those of its own launch.
func withoutLimits(environ []string) []string {
	return slices.DeleteFunc(environ, func(e string) bool { return strings.HasPrefix(e, limitPrefix) })
}

// TakeLimits takes the limits of the submitting process out of a job's NUL-terminated environment. Those that keep
// names, or all with ALL, are left to the node unless the user asked for them. Names are in lower case, -1 is no limit.
func TakeLimits(env []byte, keep []string) (rest []byte, limits map[string]int64) {
	if !bytes.Contains(env, []byte(limitPrefix)) {
		return env, nil
	}
	rest = make([]byte, 0, len(env))
	for left := env; len(left) > 0; {
		var one []byte
		one, left, _ = bytes.Cut(left, []byte{0})
		text, ok := strings.CutPrefix(string(one), limitPrefix)
		if !ok {
			rest = append(append(rest, one...), 0)
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		value, asked := strings.CutPrefix(value, "U")
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || !slices.Contains(RlimitNames, name) ||
			!asked && (slices.Contains(keep, "ALL") || slices.Contains(keep, name)) {
			continue
		}
		if limits == nil {
			limits = map[string]int64{}
		}
		limits[strings.ToLower(name)] = -1
		if n < math.MaxInt64 {
			limits[strings.ToLower(name)] = int64(n)
		}
	}
	return rest, limits
}
