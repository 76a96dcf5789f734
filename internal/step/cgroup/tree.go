package cgroup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// ErrNone means that this process may not hold processes in control groups here.
var ErrNone = errors.New("no cgroup hierarchy can be written")

// role is what a hierarchy is used for.
type role int

const (
	track role = iota
	memory
	cpuacct
	cpuset
	pids
	devices
	roles
)

var roleNames = [roles]string{"freeze", "memory", "cpuacct", "cpuset", "pids", "devices"}

// hierarchy is one mounted tree of cgroups as a Tree uses it.
type hierarchy struct {
	dir  string // of the Tree
	v2   bool
	home fd // v1: the tasks file of the keeper's own cgroup, to come back to
}

// Tree is the keeper's part of the control groups: a directory in each hierarchy, jobs below.
type Tree struct {
	hiers []hierarchy
	by    [roles]int // index into hiers, -1: no such
	// reset tells that the peak of memory can be set back, so that directories may be used again.
	reset bool
	// swap tells that memory and swap are limited together (v1) or apart (v2); without it swap is not counted.
	swap  bool
	clone bool // processes are cloned into track (v2)
	bulk  bool // track has cgroup.kill

	mu   sync.Mutex
	next int
	idle []*Job
}

// maxIdle bounds the pool.
const maxIdle = 64

// Prepare makes the directories of a Tree. A relative name is below the calling process's own cgroup, so that limits
// set from outside still hold; an absolute one is from the root of each mount.
func Prepare(l Layout, name string) (*Tree, error) {
	t := &Tree{}
	for r := range t.by {
		t.by[r] = -1
	}
	if l.V2 != nil {
		t.prepareV2(l, name)
	}
	v1 := func(r role, controllers ...string) {
		for _, c := range controllers {
			if t.by[r] < 0 && l.V1[c] != nil {
				t.by[r] = t.addV1(l.V1[c], name)
			}
		}
	}
	v1(track, "freezer", "pids", "memory", "name=systemd")
	if t.by[track] < 0 {
		t.Close()
		return nil, ErrNone
	}
	v1(memory, "memory")
	v1(cpuset, "cpuset")
	v1(pids, "pids")
	v1(devices, "devices")
	if !t.hiers[t.by[track]].v2 {
		v1(cpuacct, "cpuacct")
	}
	t.dropUnusable()
	t.probe()
	t.leavePIDs("/proc/sys/kernel/pid_max")
	return t, nil
}

// leavePIDs keeps a quarter of the kernel's process numbers from all jobs together: the bounds of many jobs add up, and
// the node's own daemons fork too.
func (t *Tree) leavePIDs(file string) {
	if t.by[pids] < 0 {
		return
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n >= 1024 {
		// each job has a bound of its own besides
		_ = writeFile(t.hiers[t.by[pids]].dir, "pids.max", strconv.FormatInt(n-n/4, 10))
	}
}

func place(m *Mount, name string) string {
	if strings.HasPrefix(name, "/") {
		return filepath.Join(m.Point, name)
	}
	return filepath.Join(m.Own, name)
}

// addV1 makes the Tree's directory in a v1 hierarchy and returns its index, or -1 if it may not.
func (t *Tree) addV1(m *Mount, name string) int {
	dir := place(m, name)
	for i, h := range t.hiers {
		if h.dir == dir {
			return i
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return -1
	}
	home, err := open(m.Own, "tasks", unix.O_WRONLY)
	if err != nil {
		_ = unix.Rmdir(dir)
		return -1
	}
	t.hiers = append(t.hiers, hierarchy{dir: dir, home: home})
	return len(t.hiers) - 1
}

// wanted are the v2 controllers limits need.
var wanted = map[role]string{memory: "memory", cpuset: "cpuset", pids: "pids"}

// prepareV2 makes the Tree's directory in the v2 hierarchy with the controllers it can have: below our own cgroup, or,
// when that was not given them (a login session, say) and the machine has them, at the top, as root may.
func (t *Tree) prepareV2(l Layout, name string) {
	m := *l.V2
	for filepath.Base(m.Own) == leaf { // where an earlier keeper moved us
		m.Own = filepath.Dir(m.Own)
	}
	dir := place(&m, name)
	have, err := makeV2(&m, dir)
	if top := filepath.Join(m.Point, filepath.Base(name)); top != dir && len(have) < len(offered(m.Point)) {
		if more, topErr := makeV2(&m, top); topErr == nil && len(more) > len(have) {
			if err == nil {
				_ = unix.Rmdir(dir)
			}
			dir, have, err = top, more, nil
		} else if topErr == nil {
			_ = unix.Rmdir(top)
		}
	}
	if err != nil {
		return
	}
	t.hiers = append(t.hiers, hierarchy{dir: dir, v2: true, home: closed})
	t.by[track] = len(t.hiers) - 1
	t.clone = true
	t.bulk = unix.Access(filepath.Join(dir, "cgroup.kill"), unix.W_OK) == nil
	for r := range have {
		t.by[r] = t.by[track]
	}
	// Devices are a program attached to a v2 cgroup, not a controller; it needs no more than the right to load one.
	if l.V1["devices"] == nil && canFilterDevices() {
		t.by[devices] = t.by[track]
	}
}

// offered are the controllers we want that the hierarchy has at all; on a machine with v1 they are there instead.
func offered(point string) map[role]bool {
	out := map[role]bool{}
	b, err := os.ReadFile(filepath.Join(point, "cgroup.controllers"))
	if err != nil {
		return out
	}
	for r, c := range wanted {
		if slices.Contains(strings.Fields(string(b)), c) {
			out[r] = true
		}
	}
	return out
}

// makeV2 makes a directory that can hold steps and hands down to it what can be had.
func makeV2(m *Mount, dir string) (map[role]bool, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK); err != nil {
		_ = unix.Rmdir(dir)
		return nil, err
	}
	have := map[role]bool{}
	for r := range offered(m.Point) {
		if handDown(m, dir, wanted[r]) == nil {
			have[r] = true
		}
	}
	return have, nil
}

// handDown enables a controller in every cgroup from the mount down to dir. In v2 a cgroup that hands down controllers
// holds no processes itself, so those of our own cgroup are moved into a leaf below it; other people's stay where they
// are.
func handDown(m *Mount, dir, controller string) error {
	rel, err := filepath.Rel(m.Point, dir)
	if err != nil {
		return err
	}
	at := m.Point
	for _, part := range append([]string{"."}, strings.Split(rel, "/")...) {
		at = filepath.Join(at, part)
		have, err := os.ReadFile(filepath.Join(at, "cgroup.subtree_control"))
		if err != nil {
			return err
		}
		if slices.Contains(strings.Fields(string(have)), controller) {
			continue
		}
		err = writeFile(at, "cgroup.subtree_control", "+"+controller)
		if errors.Is(err, unix.EBUSY) && at == m.Own {
			if err = vacate(at); err == nil {
				err = writeFile(at, "cgroup.subtree_control", "+"+controller)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// leaf is where the processes of our own cgroup go when it hands down controllers.
const leaf = "bireme-daemon"

// vacate moves the processes of a cgroup into a leaf below it.
func vacate(dir string) error {
	to := filepath.Join(dir, leaf)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	procs, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, pid := range strings.Fields(string(procs)) {
		if err := writeFile(to, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// dropUnusable forgets roles whose control files are not there: a v1 cpuset needs CPUs before it takes a process.
func (t *Tree) dropUnusable() {
	if i := t.by[cpuset]; i >= 0 && !t.hiers[i].v2 {
		if err := inheritCPUs(t.hiers[i].dir); err != nil {
			t.by[cpuset] = -1
		}
	}
}

// inheritCPUs gives a v1 cpuset, and those above it that have none yet, the CPUs and memory nodes of its parent.
func inheritCPUs(dir string) error {
	for _, name := range []string{"cpuset.mems", "cpuset.cpus"} {
		have, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(have)) != "" {
			continue
		}
		parent := filepath.Dir(dir)
		if b, err := os.ReadFile(filepath.Join(parent, name)); err != nil {
			return err
		} else if strings.TrimSpace(string(b)) == "" {
			if err := inheritCPUs(parent); err != nil {
				return err
			}
		}
		b, err := os.ReadFile(filepath.Join(parent, name))
		if err != nil {
			return err
		}
		if err := writeFile(dir, name, strings.TrimSpace(string(b))); err != nil {
			return err
		}
	}
	return nil
}

// probe learns which optional files this kernel has.
func (t *Tree) probe() {
	i := t.by[memory]
	if i < 0 {
		t.reset = true
		return
	}
	h := t.hiers[i]
	if !h.v2 {
		t.reset = true
		t.swap = unix.Access(filepath.Join(h.dir, "memory.memsw.limit_in_bytes"), unix.W_OK) == nil
		return
	}
	// memory.peak takes a write since Linux 6.12; before that a directory tells only one job's peak.
	if f, err := open(h.dir, "memory.peak", unix.O_RDWR); err == nil {
		t.reset = true
		f.close()
	}
	t.swap = unix.Access(filepath.Join(h.dir, "memory.swap.max"), unix.W_OK) == nil
}

// V2 reports whether memory (or, without a memory controller, tracking) is on cgroup v2.
func (t *Tree) V2() bool {
	if i := t.by[memory]; i >= 0 {
		return t.hiers[i].v2
	}
	return t.hiers[t.by[track]].v2
}

// Enforces lists what this tree can hold.
func (t *Tree) Enforces() []string {
	var list []string
	for r, i := range t.by {
		if i < 0 || role(r) == cpuacct {
			continue
		}
		if role(r) == track && !t.canFreeze() {
			continue
		}
		list = append(list, roleNames[r])
	}
	return list
}

func (t *Tree) canFreeze() bool {
	h := t.hiers[t.by[track]]
	name := "freezer.state"
	if h.v2 {
		name = "cgroup.freeze"
		// The root of a tree has these files, too.
	}
	return unix.Access(filepath.Join(h.dir, name), unix.W_OK) == nil
}

// Dirs lists the tree's directories, the one that holds the processes first: with them anybody can clean up after a
// keeper that died, wherever in the hierarchies it ran.
func (t *Tree) Dirs() []string {
	list := []string{t.hiers[t.by[track]].dir}
	for i, h := range t.hiers {
		if i != t.by[track] {
			list = append(list, h.dir)
		}
	}
	return list
}

// Save writes Dirs to a file and Load reads it back; nothing saved is no error.
func (t *Tree) Save(path string) error {
	b, err := json.Marshal(t.Dirs())
	if err != nil {
		return err
	}
	return os.WriteFile(path, b, 0o600)
}

// Load reads what Save wrote.
func Load(path string) ([]string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	if err := json.Unmarshal(b, &dirs); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return dirs, nil
}

// Close closes file handles. Directories stay: Clean removes them.
func (t *Tree) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, j := range t.idle {
		j.close()
	}
	t.idle = nil
	for i := range t.hiers {
		t.hiers[i].home.close()
	}
}

// slot names the directories of the next job. Numbers are not used twice by one keeper.
func (t *Tree) slot() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.next++
	return "job" + strconv.Itoa(t.next)
}
