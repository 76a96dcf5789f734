package parcel

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrBad is a parcel that Pack did not make.
var ErrBad = errors.New("the parcel of files is not as it should be")

// Unpack lays a parcel out. What is relative goes below dir, what begins with ~ below home. A file that is there
// already is replaced, a directory is added to; nothing is written outside of an item's own place, whatever links the
// parcel or the place itself has.
func Unpack(data []byte, dir, home string) error { return unpack(data, dir, home, nil) }

// unpack lays a parcel out; with a keeper it leaves what is there as it is.
func unpack(data []byte, dir, home string, keep *keeper) error {
	list, rest, err := targets(data)
	if err != nil {
		return err
	}
	r, left := tar.NewReader(bytes.NewReader(rest)), int64(len(rest))
	u := &unpacker{at: -1, keep: keep}
	defer func() { _ = u.close() }() // after an error; otherwise there is nothing left to close
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return u.close()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrBad, err)
		}
		// A sparse member has holes of any size, which are read as zeros.
		if left -= h.Size; left < 0 || len(h.Name) > maxPath {
			return fmt.Errorf("%w: %.80q", ErrBad, h.Name)
		}
		top, below, _ := strings.Cut(strings.TrimSuffix(h.Name, "/"), "/")
		i, err := strconv.Atoi(top)
		switch {
		case err != nil || i < 0 || i >= len(list):
			return fmt.Errorf("%w: %q", ErrBad, h.Name)
		case below == "":
			err = u.begin(i, resolve(list[i], dir, home), h, r)
		case i != u.at || u.root == nil || !filepath.IsLocal(below):
			return fmt.Errorf("%w: %q", ErrBad, h.Name)
		default:
			err = u.put(below, h, r)
		}
		if err != nil {
			return err
		}
	}
}

// resolve returns where an item goes.
func resolve(to, dir, home string) string {
	switch {
	case to == "~" || strings.HasPrefix(to, "~/"):
		return filepath.Join(home, to[1:])
	case filepath.IsAbs(to):
		return filepath.Clean(to)
	}
	return filepath.Join(dir, to)
}

// unpacker lays out one item after the other.
type unpacker struct {
	at   int      // which item
	to   string   // where it goes
	root *os.Root // of a directory; nil: the item was a file
	made []made
	keep *keeper // nil: what is in the way of a file is replaced
}

// made is a directory of ours, whose mode waits until it is full: it may forbid writing.
type made struct {
	name string
	mode fs.FileMode
}

// begin starts an item.
func (u *unpacker) begin(i int, to string, h *tar.Header, r io.Reader) error {
	if err := u.close(); err != nil {
		return err
	}
	u.at, u.to = i, to
	if h.Typeflag == tar.TypeDir {
		_, err := os.Stat(to)
		fresh := errors.Is(err, fs.ErrNotExist)
		if err := u.keep.mkdirAll(to); err != nil {
			return plain(to, err)
		}
		if u.root, err = os.OpenRoot(to); err != nil {
			return plain(to, err)
		}
		if fresh {
			u.made = append(u.made, made{".", h.FileInfo().Mode().Perm()})
		}
		return nil
	}
	parent := filepath.Dir(to)
	if err := u.keep.mkdirAll(parent); err != nil {
		return plain(parent, err)
	}
	root, err := os.OpenRoot(parent)
	if err != nil {
		return plain(parent, err)
	}
	defer root.Close()
	if err := u.write(root, parent, filepath.Base(to), h, r); err != nil {
		return plain(to, err)
	}
	return nil
}

// write makes a file.
func (u *unpacker) write(root *os.Root, dir, name string, h *tar.Header, r io.Reader) error {
	switch {
	case h.Typeflag != tar.TypeReg:
		return ErrBad
	case u.keep != nil:
		return u.keep.file(root, dir, name, h, r)
	}
	return write(root, name, h, r)
}

// put lays out what is below a directory.
func (u *unpacker) put(name string, h *tar.Header, r io.Reader) error {
	var err error
	switch h.Typeflag {
	case tar.TypeDir:
		switch err = u.keep.mkdir(u.root, u.to, name); {
		case err == nil:
			u.made = append(u.made, made{name, h.FileInfo().Mode().Perm()})
		case errors.Is(err, fs.ErrExist):
			var st fs.FileInfo
			if st, err = u.root.Stat(name); err == nil && !st.IsDir() {
				err = errors.New("there is something else than a folder already")
			}
		}
	case tar.TypeSymlink:
		if u.keep != nil {
			err = u.keep.link(u.root, u.to, name, h.Linkname)
		} else if err = makeRoom(u.root, name); err == nil {
			err = u.root.Symlink(h.Linkname, name)
		}
	default:
		err = u.write(u.root, u.to, name, h, r)
	}
	if err != nil {
		return plain(filepath.Join(u.to, name), err)
	}
	return nil
}

// close ends an item: its directories get their modes, the deepest first.
func (u *unpacker) close() error {
	if u.root == nil {
		return nil
	}
	var err error
	for _, m := range slices.Backward(u.made) {
		if e := u.root.Chmod(m.name, m.mode); e != nil && err == nil {
			err = plain(filepath.Join(u.to, m.name), e)
		}
	}
	u.root.Close()
	u.root, u.made = nil, nil
	return err
}

// write makes a file again: what is there may be a link, or a program that runs.
func write(root *os.Root, name string, h *tar.Header, r io.Reader) error {
	if err := makeRoom(root, name); err != nil {
		return err
	}
	return fill(root, name, h, r)
}

// fill makes a file that is not there yet.
func fill(root *os.Root, name string, h *tar.Header, r io.Reader) error {
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(h.FileInfo().Mode().Perm())
	}
	return errors.Join(err, f.Close())
}

// makeRoom removes what is no directory.
func makeRoom(root *os.Root, name string) error {
	st, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case st.IsDir():
		return errors.New("there is a folder already")
	}
	return root.Remove(name)
}
