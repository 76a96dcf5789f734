package parcel

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Note is what Lay does with a path.
type Note byte

const (
	Made  Note = '+' // it is about to be made
	Found Note = '=' // it is there already, and is the same
	Other Note = '-' // it was about to be made, and somebody else was faster
)

// ErrDiffers is something in the way.
var ErrDiffers = errors.New("there is something else of that name already; files of the node are not replaced")

// Lay lays a parcel out among the files of a user. Unlike Unpack it replaces nothing: what is there and is the same is
// used as it is, what differs is an error. note is told of each path before it is made, so that Remove can follow even
// if this process dies.
func Lay(data []byte, dir, home string, note func(Note, string) error) error {
	return unpack(data, dir, home, &keeper{note: note})
}

// Remove removes what Lay made: files, links, and those folders that have nothing else in them.
func Remove(made []string) error {
	var faults []error
	inOrder := slices.Sorted(slices.Values(made)) // a folder comes before what is in it
	for _, path := range slices.Backward(inOrder) {
		err := unix.Unlink(path)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			err = unix.Rmdir(path)
		}
		gone := errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
		if err != nil && !gone && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			faults = append(faults, &fs.PathError{Op: "remove", Path: path, Err: err})
		}
	}
	return errors.Join(faults...)
}

// keeper makes what is not there, and leaves the rest. A nil one keeps nothing.
type keeper struct{ note func(Note, string) error }

// mkdirAll makes a folder and those above it.
func (k *keeper) mkdirAll(dir string) error {
	if k == nil {
		return os.MkdirAll(dir, 0o755)
	}
	var missing []string
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, fs.ErrNotExist) || at == "/" {
			if err := k.note(Found, at); err != nil {
				return err
			}
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		if err := k.make(at, func() error { return os.Mkdir(at, 0o755) }); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.MkdirAll(dir, 0o755) // it says what is wrong if there is no folder now
}

// mkdir makes one folder below a root.
func (k *keeper) mkdir(root *os.Root, dir, name string) error {
	if k == nil {
		return root.Mkdir(name, 0o700)
	}
	if _, err := root.Lstat(name); err == nil {
		return errors.Join(fs.ErrExist, k.note(Found, filepath.Join(dir, name)))
	}
	return k.make(filepath.Join(dir, name), func() error { return root.Mkdir(name, 0o700) })
}

// make notes a path and makes it.
func (k *keeper) make(path string, make func() error) error {
	if err := k.note(Made, path); err != nil {
		return err
	}
	err := make()
	if err != nil {
		return errors.Join(err, k.note(Other, path))
	}
	return nil
}

// file makes a file, all at once: another node that shares the file system may do the same at this moment.
func (k *keeper) file(root *os.Root, dir, name string, h *tar.Header, r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	same := func() error {
		if !holds(root, name, data) {
			return ErrDiffers
		}
		return k.note(Found, filepath.Join(dir, name))
	}
	if _, err := root.Lstat(name); err == nil {
		return same()
	}
	temp := filepath.Join(filepath.Dir(name), ".bireme-"+rand.Text())
	err = k.make(filepath.Join(dir, name), func() error {
		if err := fill(root, temp, h, bytes.NewReader(data)); err != nil {
			return err
		}
		err := root.Link(temp, name)
		if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without hard links
			err = fill(root, name, h, bytes.NewReader(data))
		}
		return errors.Join(err, root.Remove(temp))
	})
	if errors.Is(err, fs.ErrExist) {
		return same()
	}
	return err
}

// holds reports whether a file has this content.
func holds(root *os.Root, name string, data []byte) bool {
	st, err := root.Lstat(name)
	if err != nil || !st.Mode().IsRegular() || st.Size() != int64(len(data)) {
		return false
	}
	had, err := root.ReadFile(name)
	return err == nil && bytes.Equal(had, data)
}

// link makes a symbolic link.
func (k *keeper) link(root *os.Root, dir, name, to string) error {
	same := func() error {
		if had, err := root.Readlink(name); err != nil || had != to {
			return ErrDiffers
		}
		return k.note(Found, filepath.Join(dir, name))
	}
	if _, err := root.Lstat(name); err == nil {
		return same()
	}
	err := k.make(filepath.Join(dir, name), func() error { return root.Symlink(to, name) })
	if errors.Is(err, fs.ErrExist) {
		return same()
	}
	return err
}
