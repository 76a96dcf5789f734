package cgroup

import (
	"strconv"
	"strings"
)

// Saved is a Job as it is handed to the next program of the same keeper.
type Saved struct {
	Name   string      `json:"name"`
	Made   [roles]bool `json:"made"`
	Memory int64       `json:"memory"`
	Swap   int64       `json:"swap"`
	PIDs   int64       `json:"pids"`
	CPUs   string      `json:"cpus,omitempty"`
	Steps  []Usage     `json:"steps"` // where each step's counters began
	Filter bool        `json:"filter,omitempty"`
}

// Save describes the job.
func (j *Job) Save() Saved {
	s := Saved{
		Name: j.name, Made: j.made, Memory: j.memory, Swap: j.swap, PIDs: j.pids, CPUs: j.cpus,
		Filter: !j.devs.free() || j.once,
	}
	for _, st := range j.steps[:j.used] {
		s.Steps = append(s.Steps, st.base)
	}
	return s
}

// Index is the number of a step within its job's Saved.
func (s *Step) Index() int { return s.n }

// Adopt takes over a job that another program of this process has made, and its steps.
func (t *Tree) Adopt(s Saved) (*Job, []*Step, error) {
	j := &Job{
		t: t, name: s.Name, made: s.Made, memory: s.Memory, swap: s.Swap, pids: s.PIDs, cpus: s.CPUs, filter: closed,
		once: s.Filter, // the device rules stay on the cgroup, but what they are is forgotten
	}
	for _, r := range []role{pids, cpuset, devices} {
		if j.made[r] {
			if err := j.enter(r); err != nil {
				return nil, nil, err
			}
		}
	}
	for i, base := range s.Steps {
		st, err := j.newStep(i)
		if err != nil {
			return nil, nil, err
		}
		st.base = base
		j.steps = append(j.steps, st)
	}
	j.used = len(j.steps)
	t.mu.Lock()
	if n, err := strconv.Atoi(strings.TrimPrefix(s.Name, "job")); err == nil {
		t.next = max(t.next, n)
	}
	t.mu.Unlock()
	return j, j.steps, nil
}

// Purge removes the places that wait for jobs.
func (t *Tree) Purge() error {
	t.mu.Lock()
	idle := t.idle
	t.idle = nil
	t.mu.Unlock()
	for _, j := range idle {
		if err := j.Remove(); err != nil {
			return err
		}
	}
	return nil
}
