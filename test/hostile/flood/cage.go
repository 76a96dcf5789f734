package flood

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Cage is a cgroup with one half of the machine's processors, for attackers and their jobs.
type Cage struct {
	cpus  string   // the processors, as a cpuset has them
	set   string   // the cgroup that has them
	share string   // v1: the cgroup of the cpu controller, whose parts get the same share; v2: the same as set
	parts []string // directories below share
}

const (
	root   = "/sys/fs/cgroup"
	rootV1 = root + "/cpuset" // there is one only with cgroups of version 1
)

// isV1 reports whether controllers are mounted each by itself.
func isV1() bool {
	_, err := os.Stat(filepath.Join(rootV1, "cpuset.cpus"))
	return err == nil
}

// NewCage makes a cgroup (of version 1 or 2) that has the second half of the processors. A quota of as much time would
// be spent on all processors at once, in bursts of tens of milliseconds.
func NewCage(name string) (*Cage, error) {
	cpus, err := secondHalf()
	if err != nil {
		return nil, err
	}
	c := &Cage{cpus: cpus, set: filepath.Join(root, name)}
	c.share = c.set
	if isV1() {
		c.set, c.share = filepath.Join(rootV1, name), filepath.Join(root, "cpu", name)
	} else if err := write(root, "cgroup.subtree_control", "+cpu +cpuset"); err != nil {
		return nil, err
	}
	if err := c.make(); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Cage) make() error {
	for _, dir := range []string{c.set, c.share} {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if c.share == c.set {
		return errors.Join(write(c.set, "cpuset.cpus", c.cpus), write(c.set, "cgroup.subtree_control", "+cpu"))
	}
	mems, err := os.ReadFile(filepath.Join(rootV1, "cpuset.mems"))
	if err != nil {
		return err
	}
	return errors.Join(write(c.set, "cpuset.mems", strings.TrimSpace(string(mems))), write(c.set, "cpuset.cpus", c.cpus))
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0)
}

// secondHalf lists the second half of the processors in use.
func secondHalf() (string, error) {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return "", err
	}
	all, err := processors(strings.TrimSpace(string(text)))
	if err != nil {
		return "", err
	}
	if len(all) < 2 {
		return "", fmt.Errorf("half of the processors %s is none", bytes.TrimSpace(text))
	}
	half := all[(len(all)+1)/2:]
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(half)), ","), "[]"), nil
}

// processors expands a list of numbers and ranges: 0-3,8.
func processors(list string) (all []int, err error) {
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		for ; a <= b; a++ {
			all = append(all, a)
		}
	}
	return all, nil
}

// Part is a cgroup within the cage. Its parts get the same share where all want more: no kind of attack starves
// another.
func (c *Cage) Part(name string) (*Cage, error) {
	dir := filepath.Join(c.share, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	c.parts = append(c.parts, dir)
	return &Cage{cpus: c.cpus, set: c.set, share: dir}, nil
}

// Put moves a process into a part of the cage.
func (c *Cage) Put(pid int) error {
	err := write(c.share, "cgroup.procs", strconv.Itoa(pid))
	if err == nil && isV1() {
		err = write(c.set, "cgroup.procs", strconv.Itoa(pid))
	}
	return err
}

// PutUser moves all processes of a uid into a part of the cage. With version 2 a process of a job stays in its job's
// cgroup, which is held to the cage's processors where it is. It returns how many were outside: they may have had
// children meanwhile, so it is called until there are none.
func (c *Cage) PutUser(uid uint32) (int, error) {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, dir := range procs {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil || !bytes.Contains(status, []byte(fmt.Sprintf("\nUid:\t%d\t", uid))) {
			continue // it has ended, or is another's
		}
		groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil || c.holds(string(groups)) {
			continue
		}
		n++
		if own := ownGroup(string(groups)); own != "" {
			if err := c.hold(own); err != nil {
				return n, err
			}
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return n, err
		}
		_ = c.Put(pid) // it may have ended
	}
	return n, nil
}

// holds reports whether a process with these cgroups is bound to the cage's processors.
func (c *Cage) holds(groups string) bool {
	if isV1() {
		return groupOf(groups, "cpuset") == strings.TrimPrefix(c.set, rootV1) &&
			groupOf(groups, "cpu") == strings.TrimPrefix(c.share, filepath.Join(root, "cpu"))
	}
	own := ownGroup(groups)
	if own == "" {
		return false
	}
	if strings.HasPrefix(own+"/", c.set+"/") {
		return true
	}
	now, err := os.ReadFile(filepath.Join(withSet(own), "cpuset.cpus"))
	return err == nil && sameProcessors(string(now), c.cpus)
}

// sameProcessors reports whether two lists name the same processors: the kernel writes ranges where it can.
func sameProcessors(a, b string) bool {
	x, errX := processors(strings.TrimSpace(a))
	y, errY := processors(strings.TrimSpace(b))
	return errX == nil && errY == nil && slices.Equal(x, y)
}

// hold binds a cgroup of version 2 to the cage's processors.
func (c *Cage) hold(dir string) error { return write(withSet(dir), "cpuset.cpus", c.cpus) }

// withSet is the nearest cgroup from dir upwards that has processors of its own.
func withSet(dir string) string {
	for dir != root {
		if _, err := os.Stat(filepath.Join(dir, "cpuset.cpus")); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// ownGroup is the directory of a process's cgroup of version 2, or "" where that is the root or controllers are those
// of version 1: there every process can be moved.
func ownGroup(groups string) string {
	if isV1() {
		return ""
	}
	if path := groupOf(groups, ""); path != "" && path != "/" {
		return filepath.Join(root, path)
	}
	return ""
}

// groupOf is a process's cgroup of a controller of version 1, or of version 2 where none is named.
func groupOf(groups, controller string) string {
	for line := range strings.Lines(groups) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 && slices.Contains(strings.Split(f[1], ","), controller) {
			return f[2]
		}
	}
	return ""
}

// Close removes the cage, which must be empty.
func (c *Cage) Close() error {
	for len(c.parts) > 0 {
		if err := os.Remove(c.parts[0]); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		c.parts = c.parts[1:]
	}
	for _, dir := range []string{c.share, c.set} {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
