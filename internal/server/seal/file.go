package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Open reads a ring's file; with create it makes one with a new key where there is none.
func Open(path string, create bool) (*Ring, error) {
	r := &Ring{path: path}
	text, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		text, err = makeFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the sealing key: %w", err)
	}
	list, err := parse(path, text)
	if err != nil {
		return nil, err
	}
	r.keys.Store(&keys{list: list, current: list[len(list)-1]})
	return r, nil
}

// readFile refuses a file that everybody can read: what it protects would not be protected.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o007 != 0 {
		return nil, fmt.Errorf("%s has mode %#o, so every user of this host can open it: chmod 600 %[1]s, then "+
			"`biremed seal rotate`",
			path, st.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s is too long for a file of sealing keys", path)
	}
	return b, err
}

const maxFile = 64 << 10

// parse reads the lines `ID KEY`, or one bare key. Errors name lines, never what is in them.
func parse(path string, text []byte) ([]*key, error) {
	var list []*key
	for i, line := range strings.Split(string(text), "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		id, digits := uint64(0), words[len(words)-1]
		var err error
		if len(words) == 1 && list == nil {
			id = 1
		} else if len(words) == 2 {
			id, err = strconv.ParseUint(words[0], 10, 32)
		}
		b, herr := hex.DecodeString(digits)
		if err != nil || herr != nil || id == 0 || len(b) != keySize {
			return nil, fmt.Errorf("%s, line %d: expected a sealing key: 64 hexadecimal digits, or an id and 64 "+
				"hexadecimal digits", path, i+1)
		}
		if n := len(list); n > 0 && list[n-1].id >= KeyID(id) {
			return nil, fmt.Errorf("%s, line %d: the ids of sealing keys must ascend", path, i+1)
		}
		k, err := newKey(KeyID(id), b)
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	if list == nil {
		return nil, fmt.Errorf("%s has no sealing key: expected 64 hexadecimal digits", path)
	}
	return list, nil
}

func format(list []*key) []byte {
	var b bytes.Buffer
	b.WriteString("# The keys that seal secrets in the store: ID KEY, the newest last. Whoever has them and the " +
		"store has the secrets.\n")
	for _, k := range list {
		fmt.Fprintf(&b, "%d %s\n", k.id, hex.EncodeToString(k.bytes[:]))
	}
	return b.Bytes()
}

// makeFile writes a new key to stable storage before it is used: a sealed CA without its key is lost.
func makeFile(path string) ([]byte, error) {
	k, err := randomKey(1)
	if err != nil {
		return nil, err
	}
	text := format([]*key{k})
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern(path)) // 0600
	if err != nil {
		return nil, err
	}
	_, werr := f.Write(text)
	err = errors.Join(werr, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // whole or not at all, and never over another server's
	}
	if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if b, rerr := readFile(path); err != nil && rerr == nil { // another server was first
		return b, nil
	}
	if err != nil {
		return nil, err
	}
	return text, syncFolder(path)
}

// tempPattern names files that are being written. One that is left after a crash holds keys and goes with the next
// change.
func tempPattern(path string) string { return "." + filepath.Base(path) + ".new-*" }

// lockFile keeps other processes from changing the file until the lock is closed: a change made from what was read
// before another one would lose the other's key. The file itself is locked, so that only those who can read it can do
// so.
func lockFile(path string) (io.Closer, error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	var f *os.File
	for {
		var err error
		// A file on NFS is locked by those who may write to it; one that is read-only here is locked all the same.
		if f, err = os.OpenFile(path, os.O_RDWR, 0); errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
			f, err = os.Open(path)
		}
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
			return nil, errors.Join(os.NewSyscallError("flock", err), f.Close())
		}
		mine, err := f.Stat()
		there, err2 := os.Stat(path)
		if err := errors.Join(err, err2); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if os.SameFile(mine, there) {
			break
		}
		if err := f.Close(); err != nil { // it was replaced meanwhile
			return nil, err
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), tempPattern(path)))
	for _, name := range left { // whoever wrote them held the lock, so they are nobody's now
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func randomKey(id KeyID) (*key, error) {
	b := make([]byte, keySize)
	if _, err := rand.Read(b); err != nil {
		return nil, err
	}
	return newKey(id, b)
}

func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// replace writes the file again: whole on stable storage, or as it was. Its owner and mode stay.
func replace(path string, list []*key) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil { // a link to a shared place stays one
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern(path)) // 0600
	if err != nil {
		return err
	}
	_, werr := f.Write(format(list))
	if err := errors.Join(werr, f.Chmod(st.Mode().Perm()), chownLike(f, st), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(path)
}

// Reload reads the file again. The current key stays the current one.
func (r *Ring) Reload() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reload()
}

func (r *Ring) reload() error {
	text, err := readFile(r.path)
	if err != nil {
		return fmt.Errorf("the sealing key: %w", err)
	}
	list, err := parse(r.path, text)
	if err != nil {
		return err
	}
	return r.set(list, r.Current())
}

func (r *Ring) set(list []*key, current KeyID) error {
	next := &keys{list: list}
	if next.current = next.find(current); next.current == nil {
		return fmt.Errorf("%s does not have key %d, with which the store is sealed: restore the file that has it",
			r.path, current)
	}
	r.keys.Store(next)
	return nil
}

// Use makes a key of the ring the one that new texts are under, after reading the file again where it is not known.
func (r *Ring) Use(id KeyID) error {
	r.using.Lock()
	defer r.using.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys.Load().find(id) == nil {
		if err := r.reload(); err != nil {
			return err
		}
	}
	return r.set(r.keys.Load().list, id)
}

// Add makes a new key, last in the file, and gives its id. It does not become the current one by that.
func (r *Ring) Add() (KeyID, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lock, err := lockFile(r.path)
	if err != nil {
		return 0, fmt.Errorf("lock %s: %w", r.path, err)
	}
	defer lock.Close()
	if err := r.reload(); err != nil {
		return 0, err
	}
	list := r.keys.Load().list
	k, err := randomKey(list[len(list)-1].id + 1)
	if err != nil {
		return 0, err
	}
	list = append(list[:len(list):len(list)], k)
	if err := replace(r.path, list); err != nil {
		return 0, fmt.Errorf("write %s: %w", r.path, err)
	}
	return k.id, r.set(list, r.Current())
}

// Drop removes all keys but the current one and those newer than it.
func (r *Ring) Drop() (gone []KeyID, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lock, err := lockFile(r.path)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", r.path, err)
	}
	defer lock.Close()
	if err := r.reload(); err != nil {
		return nil, err
	}
	ks := r.keys.Load()
	var left []*key
	for _, k := range ks.list {
		if k.id < ks.current.id {
			gone = append(gone, k.id)
		} else {
			left = append(left, k)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	if err := replace(r.path, left); err != nil {
		return nil, fmt.Errorf("write %s: %w", r.path, err)
	}
	return gone, r.set(left, ks.current.id)
}
