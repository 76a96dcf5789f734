package parcel

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Max is the longest parcel: it goes into the store and into one message to each node.
const Max = 8 << 20

// maxPath is the longest path of an item or a member, as Linux has it.
const maxPath = 4096

// listName is the member that says where the items go.
const listName = "to"

// Item is a file or a directory and where it goes.
type Item struct {
	Local string // absolute, or relative to the current directory
	Path  string // absolute, below "~", or relative to the working directory
}

// Skip gives what is to be left out of a directory, whose path is absolute and without links; nil: nothing.
type Skip func(dir string) func(at string, folder bool) (bool, error)

var errFull = fmt.Errorf("together with what comes before it has more than the %d MiB that files may have: "+
	"leave out what is not needed, fetch it in the commands, or use volumes", Max>>20)

// Pack makes a parcel of items, in their order. An error names the item by its number and what it is about.
func Pack(items []Item) ([]byte, error) { return PackWithout(nil, items) }

// PackWithout is Pack that leaves out some of what is below directories.
func PackWithout(skip Skip, items []Item) ([]byte, error) {
	paths := make([]string, len(items))
	for i := range items {
		paths[i] = items[i].Path
	}
	return pack(paths, func(p *packer, i int) error { return p.item(strconv.Itoa(i), items[i].Local, skip) })
}

// pack makes a parcel: the list of where its items go, and then each item, which add writes.
func pack(paths []string, add func(p *packer, i int) error) ([]byte, error) {
	var buf bytes.Buffer
	p := packer{tar: tar.NewWriter(&buf), buf: &buf}
	text, err := json.Marshal(paths)
	if err == nil {
		err = p.header(&tar.Header{Typeflag: tar.TypeReg, Name: listName, Size: int64(len(text)), Mode: 0o600})
	}
	if err == nil {
		_, err = p.tar.Write(text)
	}
	if err != nil {
		return nil, err
	}
	for i := range paths {
		if err := add(&p, i); err != nil {
			return nil, fmt.Errorf("files[%d]: %w", i, err)
		}
	}
	if err := p.tar.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

type packer struct {
	tar *tar.Writer
	buf *bytes.Buffer
}

// header begins a member; what would be too much is not read.
func (p *packer) header(h *tar.Header) error {
	if int64(p.buf.Len())+h.Size > Max {
		return errFull
	}
	return p.tar.WriteHeader(h)
}

// item packs a file, or a directory with all below it. An item that is a link is what it leads to; links below a
// directory stay links.
func (p *packer) item(name, local string, leave Skip) error {
	base, err := filepath.EvalSymlinks(local)
	if err == nil {
		base, err = filepath.Abs(base)
	}
	if err != nil {
		return plain(local, err)
	}
	skip := func(string, bool) (bool, error) { return false, nil }
	if leave != nil {
		skip = leave(base)
	}
	return filepath.WalkDir(base, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return plain(at, err)
		}
		switch left, err := skip(at, d.IsDir()); {
		case err != nil:
			return plain(at, err)
		case left && d.IsDir():
			return fs.SkipDir
		case left:
			return nil
		}
		below, err := filepath.Rel(base, at)
		if err != nil {
			return err
		}
		member := name
		if below != "." {
			member += "/" + filepath.ToSlash(below)
		}
		if err := p.member(member, at, d); err != nil {
			return plain(at, err)
		}
		return nil
	})
}

func (p *packer) member(name, at string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm())}
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
		return p.header(h)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(at); err != nil {
			return err
		}
		return p.header(h)
	case 0:
	default:
		return errors.New("is neither a file nor a folder nor a link")
	}
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := p.header(h); err != nil {
		return err
	}
	// One that grows meanwhile is packed as long as it was.
	switch n, err := io.Copy(p.tar, io.LimitReader(f, h.Size)); {
	case err != nil:
		return err
	case n < h.Size:
		return errors.New("was cut while it was read")
	}
	return nil
}

// plain words an error with the path once, and without the name of a system call.
func plain(at string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", at, err)
}
