package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/wire"
)

// Making and removing three inodes for every job is the dearest thing a keeper could do: file systems are slow at it,
// and ext4 becomes slower with every inode removed in the last seconds. So places for scripts and empty temporary
// directories are used again, only ever for the same user, and removed when the node has been idle for a moment.

// Scripts are the places for scripts: directories of the spool with one file each, which a job runs as $0.
type Scripts struct {
	dir string

	mu   sync.Mutex
	Next int
	idle map[uint32][]string // by uid
	n    int
}

// NewScripts makes the places below dir.
func NewScripts(dir string) *Scripts { return &Scripts{dir: dir, idle: map[uint32][]string{}} }

const (
	maxIdlePlaces = 64
	scriptName    = "slurm_script"
)

// Write puts the script of a job into a place of its own and returns its path, which ends as Slurm's does.
func (p *Scripts) Write(id wire.Identity, job core.JobID, root bool, text []byte) (string, error) {
	p.mu.Lock()
	var path string
	if l := p.idle[id.UID]; len(l) > 0 {
		path, p.idle[id.UID] = l[len(l)-1], l[:len(l)-1]
		p.n--
	} else {
		p.Next++
		path = filepath.Join(p.dir, "s"+strconv.Itoa(p.Next), scriptName)
	}
	p.mu.Unlock()
	path = named(path, job)
	err := writeScript(path, id, root, text)
	if errors.Is(err, unix.ENOENT) {
		if err = unix.Mkdir(filepath.Dir(path), 0o711); err == nil {
			err = writeScript(path, id, root, text)
		}
	}
	if err != nil {
		_ = os.RemoveAll(filepath.Dir(path))
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return path, nil
}

// named moves a place to the name of its job. Where that is taken, by another attempt of the job, it stays where it is.
func named(path string, job core.JobID) string {
	old := filepath.Dir(path)
	dir := filepath.Join(filepath.Dir(old), fmt.Sprintf("job%05d", job))
	if err := unix.Renameat2(unix.AT_FDCWD, old, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE); err == nil {
		return filepath.Join(dir, scriptName)
	} else if errors.Is(err, unix.ENOENT) && unix.Mkdir(dir, 0o711) == nil {
		return filepath.Join(dir, scriptName)
	}
	return path
}

// writeScript writes over what is there and then cuts: emptying a file first makes ext4 flush it at close.
func writeScript(path string, id wire.Identity, root bool, text []byte) error {
	// A child forked meanwhile by another thread would hold the file open for writing, and its exec would fail as "text
	// file busy". The lock keeps forks out for these few microseconds.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o700)
	if err != nil {
		return err
	}
	defer unix.Close(f)
	var st unix.Stat_t
	if err := unix.Fstat(f, &st); err != nil {
		return err
	}
	if root && (st.Uid != id.UID || st.Gid != id.GID) {
		if err := unix.Fchown(f, int(id.UID), int(id.GID)); err != nil {
			return err
		}
	}
	for b := text; len(b) > 0; {
		n, err := unix.Write(f, b)
		if err != nil {
			return err
		}
		b = b[n:]
	}
	if st.Size > int64(len(text)) {
		return unix.Ftruncate(f, int64(len(text)))
	}
	return nil
}

// Free takes a place back.
func (p *Scripts) Free(uid uint32, path string) error {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	// The file was the user's: one that has another name elsewhere, or other rights, does not get another script.
	fit := err == nil && st.Nlink == 1 && st.Mode == unix.S_IFREG|0o700 && st.Uid == uid
	p.mu.Lock()
	if fit && p.n < maxIdlePlaces {
		p.idle[uid] = append(p.idle[uid], path)
		p.n++
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	return removePlace(path)
}

func removePlace(path string) error {
	return errors.Join(gone(unix.Unlink(path)), gone(unix.Rmdir(filepath.Dir(path))))
}

// gone forgives that something is not there.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// Purge removes idle places.
func (p *Scripts) Purge() error {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.n = map[uint32][]string{}, 0
	p.mu.Unlock()
	var faults []error
	for _, l := range idle {
		for _, path := range l {
			faults = append(faults, removePlace(path))
		}
	}
	return errors.Join(faults...)
}

// TempDirs are empty temporary directories that wait for the next job of their user, in a directory nobody else may
// enter.
type TempDirs struct {
	name string // of that directory, below each base
	list string // file with the bases that have one, for a successor to clean

	mu   sync.Mutex
	next int
	idle map[tmpKey][]string
	n    int
	made map[string]bool // bases with such a directory
}

// NewTempDirs keeps idle directories below name in each base; list is the file with the bases that have one.
func NewTempDirs(name, list string) *TempDirs {
	return &TempDirs{name: name, list: list, idle: map[tmpKey][]string{}, made: map[string]bool{}}
}

type tmpKey struct {
	base     string
	uid, gid uint32
}

// Take makes dir from an idle one and reports whether there was one.
func (t *TempDirs) Take(dir string, id wire.Identity) bool {
	key := tmpKey{base: filepath.Dir(dir), uid: id.UID, gid: id.GID}
	t.mu.Lock()
	l := t.idle[key]
	if len(l) == 0 {
		t.mu.Unlock()
		return false
	}
	from := l[len(l)-1]
	t.idle[key] = l[:len(l)-1]
	t.n--
	t.mu.Unlock()
	// A directory is not moved over what somebody else made under this name.
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, dir, unix.RENAME_NOREPLACE) == nil
}

// Give removes a job's directory, or keeps it for the next one if it is as it was made.
func (t *TempDirs) Give(dir string, id wire.Identity) error {
	key := tmpKey{base: filepath.Dir(dir), uid: id.UID, gid: id.GID}
	t.mu.Lock()
	full := t.n >= maxIdlePlaces
	t.next++
	n := t.next
	known := t.made[key.base]
	t.mu.Unlock()
	if full || !pristine(dir, id) {
		return RemoveTree(dir)
	}
	home := filepath.Join(key.base, t.name)
	if !known {
		if t.note(key.base) != nil || unix.Mkdir(home, 0o700) != nil {
			return RemoveTree(dir) // not ours to make, or somebody else's
		}
		t.mu.Lock()
		t.made[key.base] = true
		t.mu.Unlock()
	}
	to := filepath.Join(home, strconv.Itoa(n))
	if err := unix.Rename(dir, to); err != nil {
		return RemoveTree(dir)
	}
	t.mu.Lock()
	t.idle[key] = append(t.idle[key], to)
	t.n++
	t.mu.Unlock()
	return nil
}

// note records a base before something is left there.
func (t *TempDirs) note(base string) error {
	f, err := os.OpenFile(t.list, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(base + "\n")
	return errors.Join(err, f.Close())
}

// Recover removes what a keeper that died kept.
func (t *TempDirs) Recover() error {
	b, err := os.ReadFile(t.list)
	if err != nil {
		return gone(err)
	}
	var faults []error
	for base := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
		if filepath.IsAbs(base) {
			faults = append(faults, os.RemoveAll(filepath.Join(base, t.name)))
		}
	}
	return errors.Join(append(faults, os.Remove(t.list))...)
}

// pristine reports whether a directory is empty and has its first owner and mode.
func pristine(dir string, id wire.Identity) bool {
	f, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(f)
	var st unix.Stat_t
	if unix.Fstat(f, &st) != nil || st.Mode != unix.S_IFDIR|0o700 || st.Uid != id.UID || st.Gid != id.GID {
		return false
	}
	var buf [1024]byte // the longest name fits behind "." and "..", which take 48 bytes
	for total := 0; ; {
		n, err := unix.Getdents(f, buf[:])
		if err != nil {
			return false
		}
		if total += n; n == 0 || total > 48 {
			return n == 0
		}
	}
}

// Purge removes the idle directories and where they waited.
func (t *TempDirs) Purge() error {
	t.mu.Lock()
	bases := t.made
	t.made, t.idle, t.n = map[string]bool{}, map[tmpKey][]string{}, 0
	t.mu.Unlock()
	var faults []error
	for base := range bases {
		faults = append(faults, os.RemoveAll(filepath.Join(base, t.name)))
	}
	if len(bases) > 0 {
		faults = append(faults, gone(os.Remove(t.list)))
	}
	return errors.Join(faults...)
}

// RemoveTree removes a directory; most are empty, or were never made.
func RemoveTree(dir string) error {
	err := unix.Rmdir(dir)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return os.RemoveAll(dir)
}
