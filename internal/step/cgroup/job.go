package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Limits is what a job may use. The zero value limits nothing.
type Limits struct {
	CPUs    string
	Memory  int64    // bytes
	Swap    int64    // bytes beyond Memory; negative: no limit
	PIDs    int64    // processes and threads
	Devices []string // "c 195:0 rwm"; nil: all
	Deny    []string // "c 195:1 rwm": not these, whatever Devices says
}

// Job is a job's place in the tree.
type Job struct {
	t     *Tree
	name  string
	made  [roles]bool // the directory of this role exists
	join  []joint     // v1 hierarchies besides those of the steps that processes must enter
	steps []*Step
	used  int // steps handed out to the present job
	// What is written in the directories now, so that the next job of the same size writes nothing.
	memory, swap int64
	pids         int64
	cpus         string
	devs         devState
	filter       fd   // v2: the attached device filter
	once         bool // not to be used again
}

// joint is a v1 cgroup to enter, and the way back.
type joint struct {
	tasks fd
	home  fd
	r     role
}

// trace is how much memory may still be charged to an ended job's directories for them to be used again: kernel objects
// and a few pages of its output file that will be reclaimed under pressure.
const trace = 1 << 20

// Get returns the place of a job, from the pool if there is one.
func (t *Tree) Get(lim Limits) (*Job, error) {
	var j *Job
	t.mu.Lock()
	if n := len(t.idle); n > 0 {
		j, t.idle = t.idle[n-1], t.idle[:n-1]
	}
	t.mu.Unlock()
	if j == nil {
		j = &Job{t: t, name: t.slot(), memory: -1, swap: -1, pids: -1, filter: closed}
		if err := j.mkdir(track); err != nil {
			j.Remove()
			return nil, err
		}
		if t.by[memory] >= 0 {
			if err := j.mkdir(memory); err != nil {
				j.Remove()
				return nil, err
			}
		}
	}
	if err := j.Limit(lim); err != nil {
		j.Remove()
		return nil, err
	}
	return j, nil
}

// dir is the job's directory in the hierarchy of a role.
func (j *Job) dir(r role) string { return filepath.Join(j.t.hiers[j.t.by[r]].dir, j.name) }

func (j *Job) v2(r role) bool { return j.t.hiers[j.t.by[r]].v2 }

// mkdir makes the job's directory for a role, once.
func (j *Job) mkdir(r role) error {
	if j.made[r] {
		return nil
	}
	if j.t.by[r] < 0 {
		return fmt.Errorf("limit %s: this node has no such cgroup controller", roleNames[r])
	}
	dir := j.dir(r)
	if err := unix.Mkdir(dir, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make cgroup %s: %w", dir, err)
	}
	j.made[r] = true
	if r == memory && j.v2(r) { // steps tell their own memory only if the job hands the controller down
		return writeFile(dir, "cgroup.subtree_control", "+memory")
	}
	return nil
}

// Limit sets or changes what the job may use.
func (j *Job) Limit(lim Limits) error {
	if err := j.limitMemory(lim); err != nil {
		return err
	}
	if err := j.limitPIDs(lim.PIDs); err != nil {
		return err
	}
	if err := j.limitCPUs(lim.CPUs); err != nil {
		return err
	}
	return j.limitDevices(devState{allow: lim.Devices, deny: lim.Deny})
}

func (j *Job) limitMemory(lim Limits) error {
	want, swap := lim.Memory, lim.Swap
	if want <= 0 {
		want, swap = -1, -1
	}
	if want == j.memory && swap == j.swap {
		return nil
	}
	if err := j.mkdir(memory); err != nil {
		return err
	}
	dir := j.dir(memory)
	if j.v2(memory) {
		if err := writeFile(dir, "memory.max", orMax(want)); err != nil {
			return err
		}
		if j.t.swap {
			if err := writeFile(dir, "memory.swap.max", orMax(swap)); err != nil {
				return err
			}
		}
	} else if err := j.limitMemoryV1(dir, want, swap); err != nil {
		return err
	}
	j.memory, j.swap = want, swap
	return nil
}

// limitMemoryV1 moves memory and memory+swap together: the second may never be below the first, so it is lifted first.
func (j *Job) limitMemoryV1(dir string, want, swap int64) error {
	if j.t.swap {
		if err := writeFile(dir, "memory.memsw.limit_in_bytes", "-1"); err != nil {
			return err
		}
	}
	if err := writeFile(dir, "memory.limit_in_bytes", strconv.FormatInt(want, 10)); err != nil {
		return err
	}
	if j.t.swap && want >= 0 && swap >= 0 {
		return writeFile(dir, "memory.memsw.limit_in_bytes", strconv.FormatInt(want+swap, 10))
	}
	return nil
}

func orMax(n int64) string {
	if n < 0 {
		return "max"
	}
	return strconv.FormatInt(n, 10)
}

func (j *Job) limitPIDs(want int64) error {
	if want <= 0 {
		want = -1
	}
	if want == j.pids {
		return nil
	}
	if err := j.mkdir(pids); err != nil {
		return err
	}
	if err := writeFile(j.dir(pids), "pids.max", orMax(want)); err != nil {
		return err
	}
	j.pids = want
	return j.enter(pids)
}

func (j *Job) limitCPUs(want string) error {
	if want == j.cpus {
		return nil
	}
	if err := j.mkdir(cpuset); err != nil {
		return err
	}
	dir := j.dir(cpuset)
	if want == "" { // back to all: what the tree has
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "cpuset.cpus"))
		if err != nil {
			return err
		}
		if err := writeFile(dir, "cpuset.cpus", string(b)); err != nil {
			return err
		}
		j.cpus = ""
		return nil
	}
	if !j.v2(cpuset) {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(dir), "cpuset.mems"))
		if err != nil {
			return err
		}
		if err := writeFile(dir, "cpuset.mems", string(b)); err != nil {
			return err
		}
	}
	if err := writeFile(dir, "cpuset.cpus", want); err != nil {
		return err
	}
	j.cpus = want
	return j.enter(cpuset)
}

// enter makes processes of the job enter its v1 directory of a role. In v2 they are there already.
func (j *Job) enter(r role) error {
	if j.v2(r) {
		return nil
	}
	for _, e := range j.join {
		if e.r == r {
			return nil
		}
	}
	tasks, err := open(j.dir(r), "tasks", unix.O_WRONLY)
	if err != nil {
		return err
	}
	j.join = append(j.join, joint{tasks: tasks, home: j.t.hiers[j.t.by[r]].home, r: r})
	return nil
}

// Freeze stops all processes of the job at once, or lets them continue.
func (j *Job) Freeze(on bool) error {
	dir := j.dir(track)
	if j.v2(track) {
		return writeFile(dir, "cgroup.freeze", map[bool]string{true: "1", false: "0"}[on])
	}
	return writeFile(dir, "freezer.state", map[bool]string{true: "FROZEN", false: "THAWED"}[on])
}

// Put returns the job's place to the pool. Every step must be empty; what is not fit for another job is removed.
func (t *Tree) Put(j *Job) error {
	for _, s := range j.steps[:j.used] {
		empty, err := s.Empty()
		if err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("cgroup %s still holds processes", s.dir(track))
		}
	}
	fit := t.reset && !j.once
	for _, s := range j.steps[:j.used] {
		fit = fit && !s.spent.Load() && s.charged() <= trace
	}
	j.used = 0
	t.mu.Lock()
	if fit && len(t.idle) < maxIdle {
		t.idle = append(t.idle, j)
		j = nil
	}
	t.mu.Unlock()
	if j == nil {
		return nil
	}
	return j.Remove()
}

// Remove takes the job's directories away; it fails while they hold processes.
func (j *Job) Remove() error {
	j.close()
	var faults []error
	rmdir := func(dir string) {
		if err := unix.Rmdir(dir); err != nil && !errors.Is(err, unix.ENOENT) {
			faults = append(faults, fmt.Errorf("remove cgroup %s: %w", dir, err))
		}
	}
	done := map[string]bool{}
	for r := range roles {
		if !j.made[r] && (r != cpuacct || j.t.by[r] < 0) {
			continue
		}
		dir := j.dir(r)
		if done[dir] {
			continue
		}
		done[dir] = true
		for i := range j.steps {
			rmdir(filepath.Join(dir, stepName(i)))
		}
		rmdir(dir)
	}
	return errors.Join(faults...)
}

func (j *Job) close() {
	for _, s := range j.steps {
		s.close()
	}
	for i := range j.join {
		j.join[i].tasks.close()
	}
	j.join = nil
	j.filter.close()
}
