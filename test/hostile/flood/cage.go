package flood

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Cage is a cgroup with a share of the processors, for attackers and their jobs.
type Cage struct {
	dir   string
	parts []string
}

// period of the share: the kernel's default. Within one the attackers may have all processors for a while.
const period = 100_000 // microseconds

// NewCage makes a cgroup (of version 1 or 2) that gets so many processors.
func NewCage(name string, cpus float64) (*Cage, error) {
	quota := strconv.Itoa(int(cpus * period))
	dir := filepath.Join("/sys/fs/cgroup/cpu", name)
	files := [][2]string{{"cpu.cfs_period_us", strconv.Itoa(period)}, {"cpu.cfs_quota_us", quota}}
	if _, err := os.Stat("/sys/fs/cgroup/cpu"); err != nil {
		dir = filepath.Join("/sys/fs/cgroup", name)
		files = [][2]string{{"cpu.max", quota + " " + strconv.Itoa(period)}, {"cgroup.subtree_control", "+cpu"}}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0); err != nil {
			_ = os.Remove(dir)
			return nil, err
		}
	}
	return &Cage{dir: dir}, nil
}

// Part is a cgroup within the cage. Its parts get the same share where all want more: no kind of attack starves
// another.
func (c *Cage) Part(name string) (*Cage, error) {
	dir := filepath.Join(c.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	c.parts = append(c.parts, dir)
	return &Cage{dir: dir}, nil
}

// Put moves a process into a part of the cage.
func (c *Cage) Put(pid int) error {
	return os.WriteFile(filepath.Join(c.dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
}

// PutUser moves all processes of a uid into a part of the cage that are in no cgroup for processors of their own, and
// holds the others where they are to their part of half a processor. It gives how many were outside: they may have had
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
		if groups, err := os.ReadFile(filepath.Join(dir, "cgroup")); err != nil ||
			bytes.Contains(groups, []byte(filepath.Base(filepath.Dir(c.dir)))) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return n, err
		}
		own := ownGroup(dir)
		if own == "" {
			n++
			_ = c.Put(pid) // it may have ended
			continue
		}
		_ = os.WriteFile(filepath.Join(own, "cpu.cfs_period_us"), []byte("100000"), 0)
		_ = os.WriteFile(filepath.Join(own, "cpu.cfs_quota_us"), []byte("1000"), 0)
		_ = os.WriteFile(filepath.Join(own, "cpu.max"), []byte("1000 100000"), 0)
	}
	return n, nil
}

// ownGroup is the directory of a process's cgroup for processors, or "" where that is the root.
func ownGroup(proc string) string {
	data, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[2] == "/" || strings.Contains(parts[2], "bireme-flood") {
			continue
		}
		for _, controller := range strings.Split(parts[1], ",") {
			if controller == "cpu" {
				return filepath.Join("/sys/fs/cgroup/cpu", parts[2])
			}
		}
		if _, err := os.Stat("/sys/fs/cgroup/cpu"); err != nil && parts[0] == "0" {
			return filepath.Join("/sys/fs/cgroup", parts[2])
		}
	}
	return ""
}

// Close removes the cage, which must be empty.
func (c *Cage) Close() error {
	for len(c.parts) > 0 {
		if err := os.Remove(c.parts[0]); err != nil {
			return err
		}
		c.parts = c.parts[1:]
	}
	return os.Remove(c.dir)
}
