package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core/storage"
	"bireme.dev/bireme/internal/wire"
)

// Run runs a program as root and returns what it wrote. mount(8) and mkfs know more than we should.
type Run func(argv []string) ([]byte, error)

// folderMode is that of a volume's own folder: whoever has it mounted may write, as in dstack. The way there is root's.
const folderMode = 0o777

// place is the volume's path below the path of its class.
func place(v *wire.Volume) (string, error) {
	if v.Path != "" {
		return v.Path, storage.CheckPath(v.Path)
	}
	if err := storage.CheckName(v.Name); err != nil {
		return "", err
	}
	if p := v.Project; p == "" || p == "." || p == ".." || strings.ContainsAny(p, "/\x00") {
		return "", fmt.Errorf("project %.60q cannot have volumes: its name is no name of a folder", p)
	}
	name := v.Name
	if v.Driver == storage.Image {
		name += ".img"
	}
	return filepath.Join(v.Project, name), nil
}

// below opens what lies below a directory, without following links.
func below(base *os.File, rel string, flags int) (*os.File, error) {
	fd, err := unix.Openat2(int(base.Fd()), rel, &unix.OpenHow{
		Flags: uint64(flags) | unix.O_CLOEXEC, Mode: 0,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(base.Name(), rel), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(base.Name(), rel)), nil
}

func fdPath(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }

// Make makes a volume, or makes sure that one which was there before is there. Doing it again changes nothing.
func Make(v *wire.Volume, dir string, run Run) error {
	return inBase(v, dir, run, func(base *os.File) error {
		rel, err := place(v)
		if err != nil {
			return err
		}
		if v.Path != "" {
			return lookAt(v, base, rel)
		}
		if err := makeParent(base, v.Project); err != nil {
			return err
		}
		if v.Driver == storage.Image {
			return makeImage(v, base, rel, run)
		}
		switch err := unix.Mkdirat(int(base.Fd()), rel, 0o700); {
		case err != nil && !errors.Is(err, unix.EEXIST):
			return &os.PathError{Op: "mkdir", Path: filepath.Join(base.Name(), rel), Err: err}
		}
		f, err := below(base, rel, unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer f.Close()
		return f.Chmod(folderMode)
	})
}

func lookAt(v *wire.Volume, base *os.File, rel string) error {
	f, err := below(base, rel, unix.O_PATH)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := os.Stat(fdPath(f))
	switch {
	case err != nil:
		return err
	case v.Driver == storage.Image && !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a file with an image", f.Name())
	case v.Driver != storage.Image && !st.IsDir():
		return fmt.Errorf("%s is not a folder", f.Name())
	}
	return nil
}

// makeParent makes the folder of a project, which only root enters.
func makeParent(base *os.File, project string) error {
	if err := unix.Mkdirat(int(base.Fd()), project, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return &os.PathError{Op: "mkdir", Path: filepath.Join(base.Name(), project), Err: err}
	}
	f, err := below(base, project, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0 { // somebody else made it first
		return fmt.Errorf("%s is not root's alone: the class's path must be one that only root writes to", f.Name())
	}
	return nil
}

// inBase opens the directory that all volumes of the class are below: for driver mount, that of a mount which lasts as
// long as the call.
func inBase(v *wire.Volume, dir string, run Run, do func(*os.File) error) error {
	path := v.Base
	if v.Driver == storage.Mount {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		at, err := os.MkdirTemp(dir, "make-")
		if err != nil {
			return err
		}
		defer os.Remove(at)
		if err := mount(v, v.Source, at, run); err != nil {
			return err
		}
		defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
		path = at
	}
	base, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("the node has no folder for volumes of class %s: %w", v.Class, err)
	}
	defer base.Close()
	return do(base)
}

// mount mounts with the options of the class.
func mount(v *wire.Volume, source, at string, run Run) error {
	options := []string{"nosuid", "nodev"}
	if v.Driver == storage.Image {
		options = append(options, "loop")
	}
	if v.ReadOnly && v.Driver == storage.Image {
		options = append(options, "ro")
	}
	if v.Options != "" {
		options = append(options, v.Options)
	}
	argv := []string{"mount"}
	if v.Type != "" {
		argv = append(argv, "-t", v.Type)
	}
	out, err := run(append(argv, "-o", strings.Join(options, ","), "--", source, at))
	if err != nil {
		return fmt.Errorf("mount %s: %w%s", v.Label(), err, said(out))
	}
	return checkFlags(at)
}

// checkFlags refuses mounts that are not as they were asked for: some helpers of mount drop options.
func checkFlags(at string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(at, &st); err != nil {
		return err
	}
	if st.Flags&unix.ST_NOSUID == 0 || st.Flags&unix.ST_NODEV == 0 {
		return errors.Join(fmt.Errorf("%s is mounted without nosuid and nodev", at), unix.Unmount(at, unix.MNT_DETACH))
	}
	return nil
}

// said is what a program wrote, as the end of a message.
func said(out []byte) string {
	text := strings.Join(strings.Fields(string(out)), " ")
	if len(text) > 400 {
		text = text[:400]
	}
	if text == "" {
		return ""
	}
	return ": " + text
}

// makeImage makes a file with a file system. It appears under its name when it is complete.
func makeImage(v *wire.Volume, base *os.File, rel string, run Run) error {
	if f, err := below(base, rel, unix.O_PATH); err == nil {
		return f.Close() // it was made, and the server did not hear of it
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(base.Fd()), &st); err == nil {
		if free := int64(st.Bavail) * st.Bsize; free < v.Size {
			return fmt.Errorf("volume of %d bytes: %s has %d bytes left", v.Size, v.Base, free)
		}
	}
	parent, err := below(base, v.Project, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer parent.Close()
	fresh := "." + v.Name + ".new"
	_ = unix.Unlinkat(int(parent.Fd()), fresh, 0)
	fd, err := unix.Openat(int(parent.Fd()), fresh, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC|unix.O_NOFOLLOW,
		0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: filepath.Join(parent.Name(), fresh), Err: err}
	}
	f := os.NewFile(uintptr(fd), filepath.Join(parent.Name(), fresh))
	defer f.Close()
	err = f.Truncate(v.Size)
	if err == nil {
		err = makeFileSystem(v, f.Name(), run)
	}
	if err == nil {
		err = openRoot(v, f.Name(), run)
	}
	if err == nil {
		err = unix.Renameat(int(parent.Fd()), fresh, int(parent.Fd()), filepath.Base(rel))
	}
	if err != nil {
		_ = unix.Unlinkat(int(parent.Fd()), fresh, 0)
	}
	return err
}

func makeFileSystem(v *wire.Volume, file string, run Run) error {
	kind := v.Type
	if kind == "" {
		kind = "ext4"
	}
	argv := []string{"mkfs." + kind}
	switch kind {
	case "ext2", "ext3", "ext4":
		argv = append(argv, "-q", "-F", "-m", "0")
	case "xfs", "btrfs":
		argv = append(argv, "-q")
	}
	if out, err := run(append(argv, file)); err != nil {
		return fmt.Errorf("%s: %w%s", argv[0], err, said(out))
	}
	return nil
}

// openRoot lets whoever mounts a new file system write there.
func openRoot(v *wire.Volume, file string, run Run) error {
	at, err := os.MkdirTemp("", "bireme-volume-")
	if err != nil {
		return err
	}
	defer os.Remove(at)
	writable := *v
	writable.ReadOnly = false
	if err := mount(&writable, file, at, run); err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(filepath.Join(at, "lost+found")), os.Chmod(at, folderMode))
	return errors.Join(err, unix.Unmount(at, 0))
}

// Remove removes a volume and all that is in it. One that is gone already was removed.
func Remove(ctx context.Context, v *wire.Volume, dir string, run Run) error {
	if v.Path != "" {
		return fmt.Errorf("%s was there before, and stays", v.Label())
	}
	return inBase(v, dir, run, func(base *os.File) error {
		rel, err := place(v)
		if err != nil {
			return err
		}
		parent, err := below(base, v.Project, unix.O_RDONLY|unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return err
		}
		defer parent.Close()
		root, err := os.OpenRoot(fdPath(parent))
		if err != nil {
			return err
		}
		defer root.Close()
		if err := ctx.Err(); err != nil {
			return err
		}
		return root.RemoveAll(filepath.Base(rel))
	})
}

// Attach mounts a volume at a directory, which it makes. A volume that is not there any more is lost: nothing is made
// in its place.
func Attach(v *wire.Volume, at string, run Run) (err error) {
	if err := os.MkdirAll(at, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", v.Label(), err), Detach(at))
		}
	}()
	base := v.Base
	if v.Driver == storage.Mount {
		base = at + sourceSuffix
		if err := os.MkdirAll(base, 0o700); err != nil {
			return err
		}
		if err := mount(v, v.Source, base, run); err != nil {
			return err
		}
	}
	dir, err := os.OpenFile(base, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return fmt.Errorf("the node has no folder for volumes of class %s: %w", v.Class, err)
	}
	defer dir.Close()
	rel, err := place(v)
	if err != nil {
		return err
	}
	flags := unix.O_PATH | unix.O_DIRECTORY
	if v.Driver == storage.Image {
		flags = unix.O_RDWR
	}
	f, err := below(dir, rel, flags)
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("it is lost: %w", err)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if v.Driver == storage.Image {
		if at := loopOf(f); at != "" {
			return fmt.Errorf("its image is mounted already, by %s", at)
		}
		return mount(v, f.Name(), at, run)
	}
	return bind(fdPath(f), at, v.ReadOnly)
}

// sourceSuffix is where the source of a volume of driver mount is mounted, beside the volume.
const sourceSuffix = ".source"

// bind shows a folder at another place, with what of its rights a volume has.
func bind(from, at string, readOnly bool) error {
	if err := unix.Mount(from, at, "", unix.MS_BIND, ""); err != nil {
		return os.NewSyscallError("bind mount", err)
	}
	flags := uintptr(unix.MS_REMOUNT | unix.MS_BIND | unix.MS_NOSUID | unix.MS_NODEV)
	if readOnly {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount("", at, "", flags, ""); err != nil {
		return os.NewSyscallError("mount with nosuid and nodev", err)
	}
	return checkFlags(at)
}

// Detach unmounts what Attach mounted, and removes its directories. It returns when nothing is mounted there any more,
// by whomever: an image must not be written by two.
func Detach(at string) error {
	dirs := []string{at, at + sourceSuffix}
	loops := loopsAt(dirs)
	for _, dir := range dirs {
		if err := unmount(dir); err != nil {
			return err
		}
	}
	for _, l := range loops {
		if err := awaitFree(l); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

const (
	detachPatience = 30 * time.Second // for what is still being written, and for containers that are being removed
	detachTick     = 20 * time.Millisecond
)

// unmount takes away every mount at a directory.
func unmount(dir string) error {
	tick := time.NewTicker(detachTick)
	defer tick.Stop()
	for deadline := time.Now().Add(detachPatience); ; {
		err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW)
		switch {
		case err == nil:
			continue // there may be one below it
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case !errors.Is(err, unix.EBUSY) || time.Now().After(deadline):
			return &os.PathError{Op: "unmount", Path: dir, Err: err}
		}
		<-tick.C
	}
}

// loopsAt lists the loop devices that are mounted at directories.
func loopsAt(dirs []string) (list []string) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		i := slices.Index(f, "-")
		if i > 0 && len(f) > i+2 && slices.Contains(dirs, f[4]) && strings.HasPrefix(f[i+2], "/dev/loop") {
			list = append(list, filepath.Base(f[i+2]))
		}
	}
	return list
}

// awaitFree returns when a loop device has no file any more: until then its file system is mounted somewhere.
func awaitFree(loop string) error {
	file := "/sys/block/" + loop + "/loop/backing_file"
	tick := time.NewTicker(detachTick)
	defer tick.Stop()
	for deadline := time.Now().Add(detachPatience); ; <-tick.C {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("/dev/%s is still mounted somewhere", loop)
		}
	}
}

// loopOf finds a loop device that has a file; empty: none has.
func loopOf(f *os.File) string {
	list, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, at := range list {
		b, err := os.ReadFile(at)
		if err != nil {
			continue
		}
		have, err := os.Stat(strings.TrimSuffix(string(b), "\n"))
		mine, err2 := f.Stat()
		if err == nil && err2 == nil && os.SameFile(have, mine) {
			return "/dev/" + strings.Split(at, "/")[3]
		}
	}
	return ""
}

// DetachAll is Detach of every volume in a directory of one job, and removes that.
func DetachAll(dir string) error {
	list, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var faults []error
	for _, e := range list {
		faults = append(faults, Detach(filepath.Join(dir, strings.TrimSuffix(e.Name(), sourceSuffix))))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	return os.Remove(dir)
}
