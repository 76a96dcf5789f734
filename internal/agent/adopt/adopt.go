package adopt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"bireme.dev/bireme/internal/procstat"
	"bireme.dev/bireme/internal/step/cgroup"
)

// Node is where the keeper's cgroups are found.
type Node struct {
	Dir  string // of the agent
	Proc string // /proc
}

// Job is a job of a user on this node.
type Job struct {
	Name  string   // of its cgroups
	Dirs  []string // cgroups of its newest step, one in each hierarchy
	Began int64    // ticks since boot: when its first process began
}

// ErrNone means that the user has no job here.
var ErrNone = errors.New("the user has no job on this node")

// process is what is needed of a process.
type process struct {
	pid, parent int
	uid         uint32
	began       int64
	cgroups     map[string]string // by hierarchy's controllers, as /proc/PID/cgroup has them
}

// Newest finds the user's job that began last. A job counts whose first process in one of its steps is the user's; what
// that process has started, as whomever, does not count.
func (n *Node) Newest(uid uint32) (*Job, error) {
	trees, err := cgroup.Load(filepath.Join(n.Dir, "keeper", "cgroups"))
	if err != nil {
		return nil, fmt.Errorf("read what the keeper holds: %w", err)
	}
	if len(trees) == 0 {
		return nil, ErrNone
	}
	slots, err := os.ReadDir(trees[0])
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	var best *Job
	for _, slot := range slots {
		if !slot.IsDir() {
			continue
		}
		if j := n.job(trees, slot.Name(), uid); j != nil && (best == nil || j.Began > best.Began) {
			best = j
		}
	}
	if best == nil {
		return nil, ErrNone
	}
	return best, nil
}

// job reads one of the keeper's jobs; nil: it is not the user's.
func (n *Node) job(trees []string, name string, uid uint32) *Job {
	top := filepath.Join(trees[0], name)
	var first, last *process
	for _, p := range n.firsts(top) {
		if p.uid != uid {
			return nil // it is another's, or somebody became another within it
		}
		if first == nil || p.began < first.began {
			first = p
		}
		if last == nil || p.began > last.began {
			last = p
		}
	}
	if first == nil {
		return nil
	}
	j := &Job{Name: name, Began: first.began}
	for _, tree := range trees {
		if dir := last.dirBelow(filepath.Join(tree, name)); dir != "" {
			j.Dirs = append(j.Dirs, dir)
		}
	}
	if len(j.Dirs) == 0 {
		return nil
	}
	return j
}

// firsts are the processes below a cgroup whose parents are not below it: those that the keeper started.
func (n *Node) firsts(top string) (out []*process) {
	inside := map[int]*process{}
	dirs := []string{top}
	if subs, err := os.ReadDir(top); err == nil {
		for _, s := range subs {
			if s.IsDir() {
				dirs = append(dirs, filepath.Join(top, s.Name()))
			}
		}
	}
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			continue // it has just gone
		}
		for word := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(word)
			if err != nil || pid <= 0 {
				continue
			}
			if p := n.process(pid); p != nil {
				inside[pid] = p
			}
		}
	}
	for _, p := range inside {
		// A session that was adopted has a parent outside, too: it is root's, as sshd is.
		if inside[p.parent] == nil && p.uid != 0 {
			out = append(out, p)
		}
	}
	return out
}

// process reads a process; nil: it has gone.
func (n *Node) process(pid int) *process {
	dir := filepath.Join(n.Proc, strconv.Itoa(pid))
	stat, ok := procstat.Read(n.Proc, pid)
	if !ok || !stat.Has(procstat.Began) {
		return nil
	}
	p := &process{
		pid: pid, cgroups: map[string]string{},
		parent: int(stat.Number(procstat.Parent)), began: stat.Number(procstat.Began),
	}
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "Uid:"); ok {
			ids := strings.Fields(rest)
			real, err := strconv.ParseUint(ids[0], 10, 32)
			if err != nil {
				return nil
			}
			p.uid = uint32(real)
		}
	}
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(groups)) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 {
			p.cgroups[parts[1]] = parts[2]
		}
	}
	return p
}

// dirBelow is the process's cgroup at or below a directory; empty: it is in none.
func (p *process) dirBelow(top string) string {
	for _, path := range p.cgroups {
		// Where a hierarchy is mounted does not matter: the end of the path names the tree, the job and the step.
		tree, name := filepath.Base(filepath.Dir(top)), filepath.Base(top)
		i := strings.Index(path+"/", "/"+tree+"/"+name+"/")
		if i < 0 {
			continue
		}
		dir := filepath.Join(top, (path + "/")[i+len("/"+tree+"/"+name):])
		if holds(dir, p.pid) {
			return dir
		}
	}
	return ""
}

func holds(dir string, pid int) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return false
	}
	for word := range strings.FieldsSeq(string(text)) {
		if word == strconv.Itoa(pid) {
			return true
		}
	}
	return false
}

// Adopt puts a process into the job: what it starts is the job's, and ends with it.
func (j *Job) Adopt(pid int) error {
	for _, dir := range j.Dirs {
		f, err := os.OpenFile(filepath.Join(dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(strconv.Itoa(pid))
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("put process %d into %s: %w", pid, dir, err)
		}
	}
	return nil
}
