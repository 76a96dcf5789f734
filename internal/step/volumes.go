package step

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// mountPatience is how long mount(8) may take: a file server may be slow, or away.
const mountPatience = 2 * time.Minute

// runMount runs a program that mounts.
func (k *Keeper) runMount(argv []string) ([]byte, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, err
	}
	return k.runHelper(helper{
		argv: append([]string{path}, argv[1:]...), env: []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"},
		attr: &syscall.SysProcAttr{Setsid: true}, dir: "/", timeout: mountPatience, max: 4 << 10,
	})
}

// errOwnView says that a launcher thread sees the file system as one job does, and cannot serve another.
var errOwnView = errors.New("the thread has a mount namespace of a job")

// showVolumes lets the calling launcher thread, and what it forks, see the volumes of a step. The thread is given up.
func showVolumes(th *thread, s *step) error {
	if len(s.l.Volumes) == 0 || s.l.StandsIn() {
		return nil
	}
	if s.l.Container != nil {
		return errors.New("network volumes need containers by Docker or Podman, or processes")
	}
	th.spoil(errOwnView)
	ns := -1
	if s.anchor != nil {
		ns = s.anchor.ns[1]
	}
	return s.k.volumes.Show(s.job.ref, s.l.Volumes, ns, s.k.cfg.Dir, s.k.cfg.Spool)
}
