package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/core/grammar"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// Defined are the options that were given, by option, variable or directive, in order.
type Defined []told

// told is an option that was given.
type told struct {
	option *Option
	value  string
}

// Lines list the options as -v does: by name, each once, with the value it has in the end.
func (d Defined) Lines(r *Request) []string {
	const rule = "-------------------- --------------------"
	values := map[string]string{}
	for _, t := range d {
		name := t.option.Long
		if name == "no-requeue" {
			name = "requeue"
		}
		values[name] = shownValue(t, r)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	out := []string{"defined options", rule}
	for _, name := range names {
		out = append(out, fmt.Sprintf("%-20s: %s", name, values[name]))
	}
	return append(out, rule, "end of defined options")
}

// shownValue is the value of an option as -v lists it.
func shownValue(t told, r *Request) string {
	s := &r.Spec
	switch t.option.Long {
	case "verbose":
		return fmt.Sprint(r.Ask.Verbose)
	case "time":
		return clockLimit(s.TimeLimit, t.value)
	case "time-min":
		return clockLimit(r.extra.TimeMin, t.value)
	case "mem":
		return shortSize(s.Shape.MemPerNode)
	case "mem-per-cpu":
		return shortSize(s.Shape.MemPerCPU)
	case "mem-per-gpu":
		return shortSize(r.more.MemPerGPU)
	case "begin":
		return s.Begin.Go().Local().Format("2006-01-02T15:04:05")
	case "deadline":
		return r.extra.Deadline.Go().Local().Format("2006-01-02T15:04:05")
	case "exclusive":
		return cmp.Or(t.value, "exclusive")
	case "gres":
		return "gres:" + strings.ReplaceAll(t.value, ",", ",gres:")
	case "mail-type":
		return r.extra.MailTypes
	case "open-mode":
		return strings.ToLower(t.value[:min(1, len(t.value))])
	case "output", "error", "input":
		if t.value == "none" {
			return "/dev/null"
		}
	case "requeue", "no-requeue":
		return t.option.Long
	case "nice":
		return fmt.Sprint(s.Nice)
	case "immediate":
		if r.Ask.Immediate != nil {
			return fmt.Sprint(int(r.Ask.Immediate.Seconds()))
		}
	case "kill-on-bad-exit":
		return map[bool]string{true: "1", false: "0"}[r.Step.KillOnBadExit]
	case "distribution":
		return cmp.Or(r.extra.Distribution, t.value)
	}
	if t.option.Arg == getopt.NoArg || t.value == "" && t.option.Arg == getopt.OptionalArg {
		return "set"
	}
	return t.value
}

func clockLimit(limit core.Seconds, text string) string {
	if limit >= core.Forever {
		return "UNLIMITED"
	}
	if limit <= 0 {
		return text
	}
	return grammar.FormatClockLimit(int64(limit) / 60)
}

// shortSize is an amount of memory in MiB without a unit, or in the greatest unit that divides it.
func shortSize(b core.Bytes) string {
	n, units := InMiB(b), []string{"", "G", "T", "P"}
	for n > 0 && n%1024 == 0 && len(units) > 1 {
		n, units = n/1024, units[1:]
	}
	return fmt.Sprintf("%d%s", n, units[0])
}
