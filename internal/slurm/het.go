package slurm

import (
	"strconv"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// inherited are the options of a het job's first component that hold for the others unless they say otherwise, as Slurm
// 22.05 lists them; sizes are each component's own.
var inherited = sync.OnceValue(func() map[string]bool {
	return map[string]bool{
		"account": true, "begin": true, "chdir": true, "comment": true, "deadline": true, "dependency": true,
		"distribution": true, "error": true,
		"exclude": true, "export": true, "export-file": true, "get-user-env": true, "gid": true, "hold": true,
		"input": true, "job-name": true,
		"kill-on-invalid-dep": true, "mail-type": true, "mail-user": true, "mem": true, "nice": true,
		"no-requeue": true, "open-mode": true,
		"output": true, "priority": true, "propagate": true, "qos": true, "requeue": true, "reservation": true,
		"signal": true, "time": true,
		"time-min": true, "uid": true, "wckey": true,
	}
})

// Inherit gives a further component of a het job what its first one says for all.
func (r *Request) Inherit(first *Request) error {
	r.level = fromNowhere // whatever it says itself is stronger
	r.extra.HetApart = true
	for _, t := range first.Defined {
		if !inherited()[t.option.Long] {
			continue
		}
		if err := t.option.set(r, t.value); err != nil {
			return err
		}
		r.given[t.option.Long] = fromScript
	}
	return nil
}

// ScriptParts is how many components a script describes.
func (r *Request) ScriptParts(name string, script []byte) (int, error) {
	parts, err := r.directives(name, script)
	return len(parts), err
}

// HetGroups are the components srun --het-group names, in its order; none: it was not given.
func (r *Request) HetGroups() ([]int32, error) {
	if r.Step.HetGroup == "" {
		return nil, nil
	}
	spans, err := rankSpans(r.Step.HetGroup)
	if err != nil || r.Step.HetGroup == "*" {
		return nil, r.Fail(ExitError, "Invalid --het-group specification: %s", r.Step.HetGroup)
	}
	var list []int32
	for _, s := range spans {
		for g := s.First; g <= min(s.Last, maxGroup); g++ {
			list = append(list, g)
		}
	}
	return list, nil
}

// maxGroup is more than the last component a het job can have.
const maxGroup = 128

// OfComponent reports whether a variable of a het job is to be read with a component's suffix.
func OfComponent(name string) bool { return hetVars[name] || sallocHetVars[name] }

// SallocHetEnv is what salloc exports of a het job: its number, its tasks, and the rest by component.
func SallocHetEnv(components []*core.Job, info ClusterInfo) []string {
	v := make(vars, 0, 40*len(components))
	v.num("SLURM_JOB_ID", int64(components[0].ID))
	v.some("SLURM_CLUSTER_NAME", info.Name)
	v.some("SLURM_SUBMIT_DIR", components[0].Spec.From.Dir)
	v.some("SLURM_SUBMIT_HOST", components[0].Spec.From.Host)
	var total int64
	for _, j := range components {
		total += int64(tasksNow(j))
	}
	v.num("SLURM_NTASKS", total)
	v.num("SLURM_NPROCS", total)
	return append(v, componentVars(components, func(name string) bool { return hetVars[name] || sallocHetVars[name] })...)
}

// HetEnv is what the script of a het job gets beside its own variables: those of each component, by its place.
func HetEnv(components []*core.Job) []string {
	return componentVars(components, func(name string) bool { return hetVars[name] })
}

func componentVars(components []*core.Job, wanted func(name string) bool) vars {
	v := make(vars, 0, 32*len(components))
	size := strconv.Itoa(len(components))
	v.set("SLURM_HET_SIZE", size)
	v.set("SLURM_PACK_SIZE", size)
	for k, j := range components {
		for _, group := range [...]string{"_HET_GROUP_", "_PACK_GROUP_"} {
			suffix := group + strconv.Itoa(k)
			for _, e := range jobVars(j, ClusterInfo{}) {
				if name, value, ok := cutVar(e); ok && wanted(name) {
					v.set(name+suffix, value)
				}
			}
		}
	}
	return v
}

func cutVar(e string) (name, value string, ok bool) {
	for i := range len(e) {
		if e[i] == '=' {
			return e[:i], e[i+1:], true
		}
	}
	return "", "", false
}

// hetVars are the variables that come once for each component, as recorded from Slurm 22.05.
var hetVars = map[string]bool{
	"SLURM_CPUS_PER_TASK": true, "SLURM_JOB_ACCOUNT": true, "SLURM_JOB_CPUS_PER_NODE": true, "SLURM_JOB_ID": true,
	"SLURM_JOB_NAME":     true,
	"SLURM_JOB_NODELIST": true, "SLURM_JOB_NUM_NODES": true, "SLURM_JOB_PARTITION": true, "SLURM_JOB_QOS": true,
	"SLURM_MEM_PER_CPU":  true,
	"SLURM_MEM_PER_NODE": true, "SLURM_NPROCS": true, "SLURM_NTASKS": true, "SLURM_NTASKS_PER_NODE": true,
	"SLURM_TASKS_PER_NODE": true,
}

// sallocHetVars are those that only salloc repeats for each component.
var sallocHetVars = map[string]bool{"SLURM_JOBID": true, "SLURM_NNODES": true, "SLURM_NODELIST": true}
