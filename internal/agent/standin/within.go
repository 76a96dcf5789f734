package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
)

// within returns the path of a mount that must be below one of the site's paths for everybody. Whoever mounts is root
// there inside and may have made links that lead out: none is followed, and verify looks at what the engine mounted.
func (s *standIn) within(m core.Mount) (string, error) {
	rules := core.ContainerRules{Volumes: s.c.Within}
	base := rules.Below(m.Source)
	if base == "" {
		return "", fmt.Errorf("mount %s: it is not below a path that the site gives to everybody (step.volumes)", m.Source)
	}
	root, err := os.Open(base)
	if err != nil {
		return "", fmt.Errorf("mount %s: %w", m.Source, err)
	}
	defer root.Close()
	// Root inside could leave programs and devices there that are root's to whoever finds them on the node.
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(root.Fd()), &st); err != nil {
		return "", fmt.Errorf("mount %s: %w", m.Source, err)
	}
	if st.Flags&unix.MS_NOSUID == 0 || st.Flags&unix.MS_NODEV == 0 {
		return "", fmt.Errorf("mount %s: the file system of %s is mounted without nosuid and nodev: an administrator "+
			"mounts it so, or takes it out of step.volumes", m.Source, base)
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(m.Source, base), "/")
	if rel == "" {
		rel = "."
	}
	fd, err := openBelow(int(root.Fd()), rel)
	if errors.Is(err, unix.ENOENT) && m.Optional {
		return "", nil
	}
	if errors.Is(err, unix.ENOENT) {
		if err = makeBelow(int(root.Fd()), rel); err == nil {
			fd, err = openBelow(int(root.Fd()), rel)
		}
	}
	if err != nil {
		return "", fmt.Errorf("mount %s, without following links: %w", m.Source, err)
	}
	s.shown = append(s.shown, shown{os.NewFile(uintptr(fd), m.Source), m.Target})
	return os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
}

func openBelow(root int, rel string) (int, error) {
	return unix.Openat2(root, rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS |
			unix.RESOLVE_NO_MAGICLINKS,
	})
}

// makeBelow makes the directories that are missing on the way, as for an administrator's mount.
func makeBelow(root int, rel string) error {
	dir, made := root, ""
	defer func() {
		if dir != root {
			_ = unix.Close(dir)
		}
	}()
	for part := range strings.SplitSeq(rel, "/") {
		made = filepath.Join(made, part)
		if err := unix.Mkdirat(dir, part, 0o755); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		next, err := openBelow(root, made)
		if err != nil {
			return err
		}
		if dir != root {
			_ = unix.Close(dir)
		}
		dir = next
	}
	return nil
}
