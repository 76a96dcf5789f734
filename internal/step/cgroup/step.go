package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Step is a step's place below its job.
type Step struct {
	j *Job
	n int

	self  fd // v2: the directory, to clone into
	event fd // v2: cgroup.events
	kill  fd // v2 with cgroup.kill
	cpu   fd // cpu.stat or cpuacct.stat
	enter []joint

	peak, usage, oom fd

	base    Usage // counters when the present step got this place
	limited bool  // an earlier or the present step had a memory limit of its own here

	// spent tells that the cgroup was killed as one. Linux from 6.14 on then kills whatever is cloned into it from outside
	// as soon as it is born (it compares the counts of kills of two different cgroups), so it cannot be used again.
	spent atomic.Bool
}

// Usage is what a step used since it began.
type Usage struct {
	UserCPU, SysCPU int64 // microseconds
	Peak            int64 // bytes, most at one moment, page cache included
	Now             int64 // bytes charged now
	OOMKills        int64
}

func stepName(i int) string { return "s" + strconv.Itoa(i) }

// Step returns the place of the next step.
func (j *Job) Step() (*Step, error) {
	if j.used == len(j.steps) {
		s, err := j.newStep(j.used)
		if err != nil {
			return nil, err
		}
		j.steps = append(j.steps, s)
	}
	s := j.steps[j.used]
	j.used++
	return s, s.begin()
}

func (s *Step) dir(r role) string { return filepath.Join(s.j.dir(r), stepName(s.n)) }

func (j *Job) newStep(n int) (*Step, error) {
	s := &Step{
		j: j, n: n, self: closed, event: closed, kill: closed, cpu: closed, peak: closed, usage: closed,
		oom: closed,
	}
	if err := s.open(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *Step) open() error {
	t := s.j.t
	for _, r := range []role{track, memory, cpuacct} {
		if t.by[r] < 0 {
			continue
		}
		dir := s.dir(r)
		if r == cpuacct {
			if err := unix.Mkdir(s.j.dir(r), 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("make cgroup %s: %w", s.j.dir(r), err)
			}
			s.j.made[cpuacct] = true
		}
		switch err := unix.Mkdir(dir, 0o755); {
		case errors.Is(err, unix.EEXIST):
			s.limited = true // it may be, of a keeper before this one
		case err != nil:
			return fmt.Errorf("make cgroup %s: %w", dir, err)
		}
		if s.j.v2(r) || s.entered(dir) {
			continue
		}
		tasks, err := open(dir, "tasks", unix.O_WRONLY)
		if err != nil {
			return err
		}
		s.enter = append(s.enter, joint{tasks: tasks, home: t.hiers[t.by[r]].home, r: r})
	}
	var err error
	open1 := func(f *fd, r role, name string, flags int) {
		if err == nil {
			*f, err = open(s.dir(r), name, flags)
		}
	}
	if s.j.v2(track) {
		open1(&s.self, track, ".", unix.O_RDONLY|unix.O_DIRECTORY)
		open1(&s.event, track, "cgroup.events", unix.O_RDONLY)
		open1(&s.cpu, track, "cpu.stat", unix.O_RDONLY)
		if t.bulk {
			open1(&s.kill, track, "cgroup.kill", unix.O_WRONLY)
		}
	} else if t.by[cpuacct] >= 0 {
		open1(&s.cpu, cpuacct, "cpuacct.stat", unix.O_RDONLY)
	}
	if t.by[memory] < 0 {
		return err
	}
	if !s.j.v2(memory) {
		open1(&s.peak, memory, "memory.max_usage_in_bytes", unix.O_RDWR)
		open1(&s.usage, memory, "memory.usage_in_bytes", unix.O_RDONLY)
		open1(&s.oom, memory, "memory.oom_control", unix.O_RDONLY)
		return err
	}
	open1(&s.usage, memory, "memory.current", unix.O_RDONLY)
	open1(&s.oom, memory, "memory.events", unix.O_RDONLY)
	if err == nil { // before Linux 6.12 it cannot be set back, before 5.19 there is none
		flags := unix.O_RDONLY
		if t.reset {
			flags = unix.O_RDWR
		}
		if s.peak, err = open(s.dir(memory), "memory.peak", flags); err != nil {
			s.peak, err = closed, nil
		}
	}
	return err
}

// entered reports whether a directory serves two roles and is in the list already.
func (s *Step) entered(dir string) bool {
	for _, e := range s.enter {
		if s.dir(e.r) == dir {
			return true
		}
	}
	return false
}

// begin notes where the counters stand.
func (s *Step) begin() error {
	if s.peak != closed && s.j.t.reset {
		if err := s.peak.write([]byte("0")); err != nil {
			return fmt.Errorf("reset peak of %s: %w", s.dir(memory), err)
		}
	}
	s.base = Usage{}
	u, err := s.Usage()
	s.base = u
	return err
}

// LimitMemory bounds the step's memory within that of its job; 0: no bound of its own. A place that is used again has
// that of the step before.
func (s *Step) LimitMemory(bytes int64) error {
	if bytes <= 0 && !s.limited || s.j.t.by[memory] < 0 {
		return nil
	}
	if s.limited = bytes > 0; !s.limited {
		bytes = -1
	}
	swap := s.j.swap
	if s.limited && s.j.memory < 0 { // its job has neither limit: what is over must not go to swap
		swap = 0
	}
	dir := s.dir(memory)
	if !s.j.v2(memory) {
		return s.j.limitMemoryV1(dir, bytes, swap)
	}
	if err := writeFile(dir, "memory.max", orMax(bytes)); err != nil {
		return err
	}
	if s.j.t.swap && s.limited {
		return writeFile(dir, "memory.swap.max", orMax(swap))
	}
	return nil
}

// FD is the directory to clone into, or -1 where the forking thread has to Join instead.
func (s *Step) FD() int { return int(s.self) }

var zero = []byte("0")

// Join moves the calling thread, which must be locked, into the step's v1 cgroups, so that what it forks is born there.
// Leave must follow also if it fails.
func (s *Step) Join() error {
	for _, list := range [2][]joint{s.enter, s.j.join} {
		for _, e := range list {
			if err := e.tasks.write(zero); err != nil {
				return fmt.Errorf("enter cgroup %s of %s: %w", roleNames[e.r], s.j.name, err)
			}
		}
	}
	return nil
}

// Leave moves the calling thread back.
func (s *Step) Leave() error {
	var fault error
	for _, list := range [2][]joint{s.enter, s.j.join} {
		for _, e := range list {
			if err := e.home.write(zero); err != nil && fault == nil {
				fault = fmt.Errorf("leave cgroup %s of %s: %w", roleNames[e.r], s.j.name, err)
			}
		}
	}
	return fault
}

// Empty reports whether no process is left.
func (s *Step) Empty() (bool, error) {
	if s.event == closed {
		list, err := s.Procs()
		return len(list) == 0, err
	}
	var buf [256]byte
	b, err := s.event.read(buf[:])
	return bytes.Contains(b, []byte("populated 0")), err
}

// Procs lists the processes.
func (s *Step) Procs() ([]int, error) { return procs(s.dir(track)) }

// Kill ends every process of the step. It returns when they have been told; Empty tells when they are gone. Where the
// kernel does not kill a cgroup as one it must be called again until Empty: a process may fork while it is looked for.
func (s *Step) Kill() error {
	if s.kill != closed {
		s.spent.Store(true)
		return s.kill.write([]byte("1"))
	}
	return killFrozen(s.dir(track), s.j.v2(track))
}

// Usage reads the counters.
func (s *Step) Usage() (Usage, error) {
	var buf [1024]byte
	var u Usage
	if s.cpu != closed {
		b, err := s.cpu.read(buf[:])
		if err != nil {
			return u, err
		}
		if s.j.v2(track) {
			u.UserCPU, u.SysCPU = field(b, "user_usec"), field(b, "system_usec")
		} else { // in ticks of 1/100 s
			u.UserCPU, u.SysCPU = field(b, "user")*10_000, field(b, "system")*10_000
		}
	}
	if s.usage != closed {
		var err error
		if u.Now, err = s.usage.number(); err != nil {
			return u, err
		}
		b, err := s.oom.read(buf[:])
		if err != nil {
			return u, err
		}
		u.OOMKills = field(b, "oom_kill")
	}
	if s.peak != closed {
		var err error
		if u.Peak, err = s.peak.number(); err != nil {
			return u, err
		}
	}
	u.UserCPU -= s.base.UserCPU
	u.SysCPU -= s.base.SysCPU
	u.OOMKills -= s.base.OOMKills
	return u, nil // memory as it is: a place used again holds no more than a trace of the job before
}

// charged is how much memory is still charged here.
func (s *Step) charged() int64 {
	if s.usage == closed {
		return 0
	}
	n, err := s.usage.number()
	if err != nil {
		return trace + 1
	}
	return n
}

func (s *Step) close() {
	for _, f := range []*fd{&s.self, &s.event, &s.kill, &s.cpu, &s.peak, &s.usage, &s.oom} {
		f.close()
	}
	for i := range s.enter {
		s.enter[i].tasks.close()
	}
	s.enter = nil
}
