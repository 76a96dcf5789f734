package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killFrozen kills the processes of one cgroup where it cannot be done in one act: freeze, so that nothing forks away,
// signal each, thaw so that they die.
func killFrozen(dir string, v2 bool) error {
	freeze(dir, v2, true)
	defer freeze(dir, v2, false)
	list, err := procs(dir)
	if err != nil {
		return err
	}
	for _, pid := range list {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill %d: %w", pid, err)
		}
	}
	return nil
}

// freeze does what it can: without a freezer the caller's repetition must suffice.
func freeze(dir string, v2, on bool) {
	name, value := "freezer.state", map[bool]string{true: "FROZEN", false: "THAWED"}[on]
	if v2 {
		name, value = "cgroup.freeze", map[bool]string{true: "1", false: "0"}[on]
	}
	_ = writeFile(dir, name, value)
}

// Clean kills everything below the directories of a tree (see Dirs and Load) and removes them, the tree's own included.
// It waits until ctx ends for processes to go. Directories that are not there are fine.
func Clean(ctx context.Context, dirs []string) error {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		left, err := killBelow(dirs)
		if err != nil {
			return err
		}
		if left == 0 {
			err = removeBelow(dirs)
			if err == nil {
				return nil
			}
		} else {
			err = fmt.Errorf("%d processes in %s do not end", left, strings.Join(dirs, ", "))
		}
		tick.Reset(wait)
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// killBelow signals every process below the directories once and tells how many it found.
func killBelow(dirs []string) (int, error) {
	found := 0
	for _, root := range dirs {
		err := eachDir(root, func(dir string) error {
			list, err := procs(dir)
			if err != nil || len(list) == 0 {
				return ignoreGone(err)
			}
			found += len(list)
			_, err = os.Stat(filepath.Join(dir, "cgroup.type")) // only v2 has it
			return ignoreGone(killFrozen(dir, err == nil))
		})
		if err != nil {
			return found, err
		}
		// A job that was suspended stays so, and does not die, until the directory above is thawed too.
		_ = eachDir(root, func(dir string) error {
			freeze(dir, false, false)
			freeze(dir, true, false)
			return nil
		})
	}
	return found, nil
}

// removeBelow removes the directories, deepest first.
func removeBelow(dirs []string) error {
	for _, root := range dirs {
		var list []string
		if err := eachDir(root, func(dir string) error { list = append(list, dir); return nil }); err != nil {
			return err
		}
		for i := len(list) - 1; i >= 0; i-- {
			if err := unix.Rmdir(list[i]); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("remove cgroup %s: %w", list[i], err)
			}
		}
	}
	return nil
}

// eachDir visits root and everything below, parents first. A root that is not there has nothing below.
func eachDir(root string, visit func(dir string) error) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		if e.IsDir() {
			return visit(path)
		}
		return nil
	})
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
