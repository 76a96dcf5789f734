package parcel

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// maxMembers bounds the files of a parcel that others packed.
const maxMembers = 20_000

// Archive is a tar that somebody uploaded, and where its content goes.
type Archive struct {
	Tar  []byte
	Path string // as Item.Path
	// Inside: its members go below Path. Otherwise it has one file or directory, whose name gives way to Path.
	Inside bool
}

// Repack makes a parcel of archives, in their order. Members that would be outside of an archive's own place, and those
// that are neither files nor directories nor links, are refused; owners and times are dropped.
func Repack(archives []Archive) ([]byte, error) {
	paths := make([]string, len(archives))
	for i := range archives {
		paths[i] = archives[i].Path
	}
	left := maxMembers
	return pack(paths, func(p *packer, i int) error { return p.archive(strconv.Itoa(i), &archives[i], &left) })
}

// archive adds one archive as an item.
func (p *packer) archive(item string, a *Archive, left *int) error {
	r := tar.NewReader(bytes.NewReader(a.Tar))
	top, begun := "", false
	made := map[string]bool{} // directories of the item that are there
	folder := func(name string, mode int64) error {
		if made[name] {
			return nil
		}
		made[name] = true
		return p.header(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: mode & 0o777})
	}
	if a.Inside {
		if begun = true; folder(item, 0o755) != nil {
			return errFull
		}
	}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			if !begun {
				return errors.New("the archive is empty")
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the archive: %w", err)
		}
		if *left--; *left < 0 {
			return fmt.Errorf("more than %d files", maxMembers)
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the archive: %q is outside of it", h.Name)
		}
		below := name
		if !a.Inside {
			first, rest, _ := strings.Cut(name, "/")
			if begun && first != top {
				return fmt.Errorf("the archive: %q is beside %q; expected one file or folder", first, top)
			}
			if top, below = first, rest; !begun && rest != "" { // its directory is not a member
				if err := folder(item, 0o755); err != nil {
					return err
				}
			}
			begun = true
		}
		if name == "." {
			continue
		}
		member := item
		if below != "" {
			member += "/" + below
		}
		if err := p.parents(item, member, folder); err != nil {
			return err
		}
		if err := p.repack(member, h, r, folder); err != nil {
			return err
		}
	}
}

// parents adds the directories above a member that are no members themselves.
func (p *packer) parents(item, member string, folder func(string, int64) error) error {
	for i := len(item) + 1; i < len(member); i++ {
		if member[i] == '/' {
			if err := folder(member[:i], 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// repack adds a member of another tar.
func (p *packer) repack(name string, h *tar.Header, r io.Reader, folder func(string, int64) error) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return folder(name, h.Mode)
	case tar.TypeSymlink:
		return p.header(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: h.Linkname})
	case tar.TypeReg:
		if err := p.header(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: h.Mode & 0o777, Size: h.Size}); err != nil {
			return err
		}
		_, err := io.Copy(p.tar, r)
		return err
	default:
		return fmt.Errorf("the archive: %q is neither a file nor a folder nor a link", h.Name)
	}
}
