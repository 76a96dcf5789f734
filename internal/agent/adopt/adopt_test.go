package adopt

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake is a node made of files.
type fake struct {
	t    *testing.T
	root string
	n    *Node
}

func newFake(t *testing.T, hierarchies ...string) *fake {
	t.Helper()
	f := &fake{t: t, root: t.TempDir()}
	f.n = &Node{Dir: filepath.Join(f.root, "agent"), Proc: filepath.Join(f.root, "proc")}
	var trees []string
	for _, h := range hierarchies {
		trees = append(trees, filepath.Join(f.root, h, "bireme-1"))
		f.mkdir(trees[len(trees)-1])
	}
	text, err := json.Marshal(trees)
	if err != nil {
		t.Fatal(err)
	}
	f.write(filepath.Join(f.n.Dir, "keeper", "cgroups"), string(text))
	return f
}

func (f *fake) mkdir(dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fake) write(name, text string) {
	f.mkdir(filepath.Dir(name))
	old, _ := os.ReadFile(name)
	if err := os.WriteFile(name, append(old, text...), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// run has a process in cgroups: hierarchy → path below the tree.
func (f *fake) run(pid, parent int, uid, began int, in map[string]string) {
	dir := filepath.Join(f.n.Proc, fmt.Sprint(pid))
	f.write(filepath.Join(dir, "stat"),
		fmt.Sprintf("%d (a) S 1) x) R %d%s %d 0\n", pid, parent, strings.Repeat(" 0", 17), began))
	f.write(filepath.Join(dir, "status"), fmt.Sprintf("Name:\ta\nUid:\t%d\t%d\t%d\t%d\n", uid, uid, uid, uid))
	f.write(filepath.Join(dir, "cgroup"), "1:name=systemd:/user.slice\n")
	for h, path := range in {
		f.write(filepath.Join(dir, "cgroup"), fmt.Sprintf("2:%s:/outer/bireme-1/%s\n", h, path))
		f.write(filepath.Join(f.root, h, "bireme-1", path, "cgroup.procs"), fmt.Sprintln(pid))
	}
}

func TestNewestJobOfUser(t *testing.T) {
	t.Parallel()
	f := newFake(t, "v2", "memory", "cpuset")
	at := func(job, step string) map[string]string {
		return map[string]string{"v2": job + "/" + step, "memory": job + "/" + step, "cpuset": job}
	}
	f.run(100, 1, 1000, 50, at("job1", "s0"))   // of 1000
	f.run(101, 100, 1000, 90, at("job1", "s0")) // a child of it, younger than the other job
	f.run(200, 1, 1000, 60, at("job2", "s0"))   // the newest job of 1000
	f.run(201, 200, 0, 61, at("job2", "s0"))    // a program with root's rights in it
	f.run(210, 1, 1000, 70, at("job2", "s1"))   // its newest step
	f.run(300, 1, 2000, 80, at("job3", "s0"))   // another's
	f.run(301, 300, 1000, 95, at("job3", "s0")) // which became 1000 within it
	f.run(400, 1, 0, 99, at("job4", "s0"))      // what is left: a session of sshd
	f.run(401, 400, 3000, 99, at("job4", "s0"))
	f.mkdir(filepath.Join(f.root, "v2", "bireme-1", "job5")) // a place that waits for a job

	j, err := f.n.Newest(1000)
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != "job2" || j.Began != 60 {
		t.Errorf("%+v", j)
	}
	if err := j.Adopt(777); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"v2/bireme-1/job2/s1", "memory/bireme-1/job2/s1", "cpuset/bireme-1/job2"} {
		text, err := os.ReadFile(filepath.Join(f.root, dir, "cgroup.procs"))
		if err != nil || !strings.Contains(string(text), "777") {
			t.Errorf("%s: %q %v", dir, text, err)
		}
	}
	if j, err := f.n.Newest(2000); err != nil || j.Name != "job3" {
		t.Errorf("%+v %v", j, err)
	}
	for _, uid := range []uint32{3000, 4000} {
		if j, err := f.n.Newest(uid); !errors.Is(err, ErrNone) {
			t.Errorf("uid %d: %+v %v", uid, j, err)
		}
	}
}

func TestWithoutKeeper(t *testing.T) {
	t.Parallel()
	n := &Node{Dir: t.TempDir(), Proc: t.TempDir()}
	if _, err := n.Newest(1000); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	f := newFake(t, "v2")
	if err := os.RemoveAll(filepath.Join(f.root, "v2")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.n.Newest(1000); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(f.n.Dir, "keeper", "cgroups"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.n.Newest(1000); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("what cannot be read lets nobody in and is told: %v", err)
	}
}
