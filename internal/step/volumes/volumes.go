package volumes

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/volume"
	"bireme.dev/bireme/internal/wire"
)

// Volumes mounts the network volumes of jobs: each job has a directory with a mount for each of its volumes, from
// before its prolog until after its epilog. A job is gone from the node when they are.
type Volumes struct {
	dir string
	run volume.Run

	mu   sync.Mutex
	used bool // something was mounted here
}

// Open begins with what a keeper before left in a directory.
func Open(dir string, run volume.Run) *Volumes {
	_, err := os.Stat(dir)
	return &Volumes{dir: dir, run: run, used: err == nil}
}

// of is the directory of a job's volumes.
func (v *Volumes) of(ref wire.JobRef) string {
	return filepath.Join(v.dir, strconv.FormatInt(int64(ref.Job), 10)+"."+strconv.Itoa(int(ref.Attempt)))
}

// At is where a job's volume is mounted.
func (v *Volumes) At(ref wire.JobRef, i int) string { return filepath.Join(v.of(ref), strconv.Itoa(i)) }

// prepare makes the directory of all volumes a mount that tells others of its changes: what is unmounted here is then
// unmounted in every namespace that was made as a copy of ours. The lock is held.
func (v *Volumes) prepare() error {
	if err := os.MkdirAll(v.dir, 0o700); err != nil {
		return err
	}
	v.used = true
	if isMounted(v.dir) {
		return nil
	}
	if err := unix.Mount(v.dir, v.dir, "", unix.MS_BIND, ""); err != nil {
		return os.NewSyscallError("mount the directory of volumes", err)
	}
	return os.NewSyscallError("share the directory of volumes", unix.Mount("", v.dir, "", unix.MS_SHARED, ""))
}

// isMounted reports whether something is mounted at a directory.
func isMounted(dir string) bool {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == dir {
			return true
		}
	}
	return false
}

// Attach mounts the volumes of a job.
func (v *Volumes) Attach(ref wire.JobRef, list []wire.Volume, root bool) error {
	if len(list) == 0 {
		return nil
	}
	if !root {
		return errors.New("network volumes are mounted by root: this node's agent is not")
	}
	v.mu.Lock()
	err := v.prepare()
	v.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range list {
		if err := volume.Attach(&list[i], v.At(ref, i), v.run); err != nil {
			return err
		}
	}
	return nil
}

// Detach unmounts what a job has mounted.
func (v *Volumes) Detach(ref wire.JobRef) error {
	v.mu.Lock()
	used := v.used
	v.mu.Unlock()
	if !used { // most nodes have none
		return nil
	}
	return volume.DetachAll(v.of(ref))
}

// DetachAll unmounts what a keeper before this one left.
func (v *Volumes) DetachAll() error {
	list, err := os.ReadDir(v.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range list {
		err = errors.Join(err, volume.DetachAll(filepath.Join(v.dir, e.Name())))
	}
	return err
}

// Rest takes the directory away when nothing is mounted in it any more.
func (v *Volumes) Rest() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.used {
		return
	}
	if list, err := os.ReadDir(v.dir); err != nil || len(list) > 0 {
		return
	}
	for unix.Unmount(v.dir, unix.UMOUNT_NOFOLLOW) == nil {
	}
	v.used = os.Remove(v.dir) != nil
}
