package slurm

import (
	"slices"
	"strconv"
	"strings"
)

// Process is what a job's processes inherit from the submitting one besides its variables.
type Process struct {
	Umask  uint32
	Nice   int
	Limits map[string]uint64 // soft limits by name
}

// JobEnviron makes the environment that a job is submitted with: what --export lets through of the caller's. It also
// settles what the job inherits from the caller's process: the umask and its limits; and whether the
// node must load the user's login environment.
func (r *Request) JobEnviron(environ []string, p Process) []string {
	out, login := exported(r.export, WithoutJob(environ))
	r.extra.LoginEnv = r.extra.LoginEnv || login
	if p.Umask != usualUmask {
		r.extra.Umask = octal(p.Umask)
	}
	r.settleExtra()
	if r.export != "" {
		out = append(dropVar(out, "SLURM_EXPORT_ENV"), "SLURM_EXPORT_ENV="+r.export)
	}
	out = append(dropVar(out, "SLURM_PRIO_PROCESS"), "SLURM_PRIO_PROCESS="+strconv.Itoa(p.Nice))
	return append(withoutLimits(out), r.limits.vars(p)...)
}

// usualUmask is what a node takes when nobody says otherwise.
const usualUmask = 0o022

func octal(mask uint32) string {
	text := strconv.FormatUint(uint64(mask), 8)
	return strings.Repeat("0", max(0, 4-len(text))) + text
}

// exported applies --export to a batch job's environment. An explicit value wins over the caller's.
func exported(value string, environ []string) (out []string, login bool) {
	switch {
	case value == "", strings.EqualFold(value, "ALL"):
		return slices.DeleteFunc(slices.Clone(environ), func(e string) bool {
			return strings.HasPrefix(e, "SLURM_JWT=")
		}), false
	case strings.EqualFold(value, "NONE"):
		return onlySlurm(environ), true
	case strings.EqualFold(value, "NIL"):
		return onlySlurm(environ), false
	}
	words := strings.Split(value, ",")
	if i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "ALL") }); i >= 0 {
		words = slices.Delete(words, i, i+1)
		out, _ = exported("", environ)
	} else {
		out, login = onlySlurm(environ), true
	}
	for _, w := range words {
		name, text, assigned := strings.Cut(w, "=")
		if !assigned {
			var ok bool
			if text, ok = lookup(environ, name); !ok {
				continue
			}
		}
		if name != "" {
			out = append(dropVar(out, name), name+"="+text)
		}
	}
	return out, login
}

func onlySlurm(environ []string) []string {
	var out []string
	for _, e := range environ {
		if (strings.HasPrefix(e, "SLURM_") && !strings.HasPrefix(e, "SLURM_JWT=")) || strings.HasPrefix(e, "SPANK_") {
			out = append(out, e)
		}
	}
	return out
}

func lookup(environ []string, name string) (string, bool) {
	for i := len(environ) - 1; i >= 0; i-- {
		if key, value, _ := strings.Cut(environ[i], "="); key == name {
			return value, true
		}
	}
	return "", false
}

func dropVar(environ []string, name string) []string {
	return slices.DeleteFunc(environ, func(e string) bool {
		return strings.HasPrefix(e, name) && len(e) > len(name) && e[len(name)] == '='
	})
}

// MergeEnv lays over upon base: one entry a name, in base's order, then what is new.
func MergeEnv(base, over []string) []string {
	at := make(map[string]int, len(base)+len(over))
	out := make([]string, 0, len(base)+len(over))
	for _, list := range [2][]string{base, over} {
		for _, e := range list {
			key, _, _ := strings.Cut(e, "=")
			if i, ok := at[key]; ok {
				out[i] = e
				continue
			}
			at[key] = len(out)
			out = append(out, e)
		}
	}
	return out
}

// StepEnviron makes the environment that srun sends with a step. Of --export=ALL,V=x the caller's V wins, as Slurm
// 22.05 does; no login environment is loaded for steps.
func (r *Request) StepEnviron(environ []string, p Process) []string {
	value := r.export
	var out []string
	if words := strings.Split(value, ","); slices.ContainsFunc(words, func(w string) bool {
		return strings.EqualFold(w, "ALL")
	}) {
		var unset []string
		for _, w := range words {
			if name, _, assigned := strings.Cut(w, "="); assigned {
				if _, there := lookup(environ, name); !there {
					unset = append(unset, w)
				}
			}
		}
		out = append(slices.Clone(environ), unset...)
	} else {
		out, _ = exported(value, environ)
	}
	out = append(withoutLimits(out), r.limits.vars(p)...)
	out = append(dropVar(out, "SLURM_UMASK"), "SLURM_UMASK="+octal(p.Umask))
	out = append(dropVar(out, "SLURM_PRIO_PROCESS"), "SLURM_PRIO_PROCESS="+strconv.Itoa(p.Nice))
	out = append(dropVar(out, "SRUN_DEBUG"), "SRUN_DEBUG=3") // how much srun itself says: no more than it must
	if r.Step.Label {
		out = append(dropVar(out, "SLURM_LABELIO"), "SLURM_LABELIO=1")
	}
	return out
}
