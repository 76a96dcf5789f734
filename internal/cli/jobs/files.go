package jobs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"bireme.dev/bireme/internal/cli/ignorefile"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

// pack reads the files that a configuration brings along: those with relative paths from its own directory, or from the
// current one if it has none.
func (o *applyOptions) pack(s *convert.Spec, file string, more ...parcel.Item) ([]byte, error) {
	files := s.Configuration.Run().Files
	if len(files)+len(more) == 0 {
		return nil, nil
	}
	dir := o.folder(file)
	items := append(make([]parcel.Item, len(files)), more...)
	for i, f := range files {
		items[i] = parcel.Item(f)
		local := &items[i].Local
		switch rest, home := strings.CutPrefix(f.Local, "~"); {
		case home:
			h, err := os.UserHomeDir()
			if err != nil {
				return nil, core.Errorf(core.Invalid, "%s: files[%d]: cannot expand ~: %v", file, i, err)
			}
			*local = filepath.Join(h, rest)
		case !filepath.IsAbs(f.Local):
			*local = filepath.Join(dir, f.Local)
		}
	}
	ignored := func(dir string) func(string, bool) (bool, error) { return ignorefile.New(dir).Skip }
	data, err := parcel.PackWithout(ignored, items)
	if err != nil {
		return nil, core.Errorf(core.Invalid, "%s: %v", file, err)
	}
	sum := sha256.Sum256(data)
	s.FileArchives = nil
	for i, f := range files { // what was brought along is a part of the run's description
		s.FileArchives = append(s.FileArchives, wire.FileArchiveTarget{
			ID: wire.UUID(wire.KindArchive, fmt.Sprintf("%x/%d", sum, i)), Path: f.Path,
		})
	}
	return data, nil
}

// directory is where relative paths of the configuration begin.
func (o *applyOptions) folder(file string) string {
	if o.file == "-" {
		return "."
	}
	return filepath.Dir(file)
}
