package cluster

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// process is something that runs and belongs to the cluster.
type process struct {
	pid int
	why string
}

// Left lists what a stopped cluster left: processes, cgroups, mounts, temporary directories.
func (c *Layout) Left() []string {
	var left []string
	for _, p := range c.processes() {
		left = append(left, fmt.Sprintf("process %d %q (%s)", p.pid, strings.Join(cmdline(p.pid), " "), p.why))
	}
	for _, dir := range c.noteTrees() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				left = append(left, "cgroup "+path)
			}
			return nil
		})
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // without /proc nothing here works
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], c.Dir) {
			left = append(left, "mount "+f[4])
		}
	}
	return append(left, c.JobsLeft()...)
}

// JobsLeft lists what ended jobs left on the nodes of a cluster that may continue: processes in its cgroups, temporary
// directories, scripts.
func (c *Layout) JobsLeft() []string {
	var left []string
	for _, dir := range c.noteTrees() {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil //nolint:nilerr // a cgroup may go while we look
			}
			procs, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for pid := range strings.FieldsSeq(string(procs)) {
				if n, err := strconv.Atoi(pid); err == nil && running(n) {
					left = append(left, fmt.Sprintf("process %d %q in cgroup %s", n, strings.Join(cmdline(n), " "), path))
				}
			}
			return nil
		})
	}
	for _, sub := range []string{"nodes/*/tmp/*", "nodes/*/keeper/spool/*"} {
		names, _ := filepath.Glob(filepath.Join(c.Dir, sub)) // the pattern is good
		for _, n := range names {
			left = append(left, "file "+n)
		}
	}
	slices.Sort(left)
	return slices.Compact(left)
}

// WaitClean waits until no ended job has left anything, and reports what stays.
func (c *Cluster) WaitClean() {
	c.T.Helper()
	c.Eventually("nothing is left of ended jobs", func() (bool, string) {
		left := c.JobsLeft()
		return len(left) == 0, strings.Join(left, "\n")
	})
}

// noteTrees returns the cgroups that the keepers write down while they have some, and those noted before.
func (c *Layout) noteTrees() []string {
	c.trees.mu.Lock()
	defer c.trees.mu.Unlock()
	names, _ := filepath.Glob(filepath.Join(c.Dir, "nodes", "*", "keeper", "cgroups")) // the pattern is good
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		var dirs []string
		if err := json.Unmarshal(b, &dirs); err != nil {
			continue // being written
		}
		for _, d := range dirs {
			c.trees.seen[d] = true
		}
	}
	return slices.Sorted(maps.Keys(c.trees.seen))
}

// processes finds what belongs to the cluster: by its command line, by its environment, which every job inherits, or by
// where it stands.
func (c *Layout) processes() []process {
	var list []process
	for _, pid := range pids() {
		if pid == os.Getpid() || !running(pid) {
			continue
		}
		proc := fmt.Sprintf("/proc/%d/", pid)
		env, _ := os.ReadFile(proc + "environ") // it may have ended
		cwd, _ := os.Readlink(proc + "cwd")
		switch {
		case strings.Contains(strings.Join(cmdline(pid), " "), c.Base):
			list = append(list, process{pid, "by its command line"})
		case strings.Contains(string(env), c.Base):
			list = append(list, process{pid, "by its environment"})
		case strings.HasPrefix(cwd, c.Base):
			list = append(list, process{pid, "by its working folder"})
		}
	}
	return list
}
