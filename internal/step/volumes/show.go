package volumes

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Show lets the calling thread, and what it forks from now on, see the volumes of its job where the job wants them. The
// thread serves nothing else afterwards. It enters the mount namespace ns of its step, if that has one (else -1). What
// is the node's own is not covered. Nothing that the processes execute makes them another user: they could
// put files of their own in the place of those that such programs trust.
func (v *Volumes) Show(ref wire.JobRef, list []wire.Volume, ns int, own ...string) error {
	if ns >= 0 {
		if err := unix.Setns(ns, unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("enter the namespace of the step", err)
		}
	} else if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return os.NewSyscallError("make a mount namespace", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return os.NewSyscallError("make mounts the job's own", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("give up other users' rights", err)
	}
	for i := range list {
		if err := showVolume(v.At(ref, i), list[i].Target, own); err != nil {
			return fmt.Errorf("%s at %s: %w", list[i].Label(), list[i].Target, err)
		}
	}
	// Other jobs' volumes are none of its business.
	return os.NewSyscallError("hide the directory of volumes", unix.Unmount(v.dir, unix.MNT_DETACH))
}

// ownRoom are folders below which places of volumes are made where they are missing: in memory, for the job alone.
var ownRoom = []string{"/mnt", "/media"}

func showVolume(from, target string, own []string) error {
	for _, ours := range own {
		if isWithin(ours, target) || isWithin(target, ours) {
			return fmt.Errorf("%s is the node's own", ours)
		}
	}
	for _, dir := range []string{"/", "/proc", "/sys", "/dev", "/run"} {
		if target == dir || dir != "/" && isWithin(target, dir) {
			return fmt.Errorf("%s is the node's own", dir)
		}
	}
	fd, err := openPlain(target)
	if errors.Is(err, unix.ENOENT) {
		if err = makeRoom(target); err == nil {
			fd, err = openPlain(target)
		}
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := "/proc/self/fd/" + strconv.Itoa(fd)
	return os.NewSyscallError("bind mount", unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, ""))
}

// isWithin reports whether a path is another, or below it.
func isWithin(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// openPlain opens a folder to which no link leads.
func openPlain(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// isOwnRoom reports whether a folder was made one of the job's own before.
func isOwnRoom(dir string) bool {
	b, err := os.ReadFile("/proc/thread-self/mountinfo")
	return err == nil && strings.Contains(string(b), " "+dir+" ") && strings.Contains(string(b), " - tmpfs volumes ")
}

// makeRoom makes the folder of a volume that the node does not have, where that leaves no trace on the node.
func makeRoom(target string) error {
	for _, room := range ownRoom {
		if !isWithin(target, room) || target == room {
			continue
		}
		if !isOwnRoom(room) {
			if err := unix.Mount("volumes", room, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=64k,mode=755"); err != nil {
				return os.NewSyscallError("make room at "+room, err)
			}
		}
		return os.MkdirAll(target, 0o755)
	}
	return core.Errorf(core.Invalid, "the node has no such folder: a job of processes mounts volumes at folders that the "+
		"node has, or below %s", strings.Join(ownRoom, " or "))
}
