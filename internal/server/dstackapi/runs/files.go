package runs

import (
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/server/dstackapi/front"
	"bireme.dev/bireme/internal/server/dstackapi/repos"
	"bireme.dev/bireme/internal/wire/parcel"
)

// files packs what a run begins with: the archives that its client uploaded, and the changes to its repository. It is
// nil where there is nothing.
func (l *look) files(s *convert.Spec, name string) ([]byte, error) {
	hash := config.Value(s.RepoCodeHash)
	if len(s.FileArchives) == 0 && hash == "" {
		return nil, nil
	}
	known, err := l.a.Uploads.Hashes(l.c.User)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]string, len(known))
	for _, h := range known {
		byID[repos.ArchiveID(l.c.User, h)] = h
	}
	tars, read := make([][]byte, len(s.FileArchives)), map[string][]byte{} // one that is named often is in memory once
	for i, f := range s.FileArchives {
		h, ok := byID[f.ID]
		if !ok {
			return nil, front.Errorf("files: there is no upload %s for %s; upload it again", f.ID, f.Path)
		}
		if read[h] == nil {
			if read[h], err = l.a.Uploads.Read(l.c.User, h); err != nil {
				return nil, err
			}
		}
		tars[i] = read[h]
	}
	var changes []byte
	if hash != "" {
		if changes, err = l.a.Uploads.Read(l.c.User, hash); err != nil {
			return nil, front.Errorf("repos: the changes to the repository were not uploaded; apply it again")
		}
	}
	list, err := s.Archives(name, tars, changes)
	if err != nil {
		return nil, err
	}
	archives := make([]parcel.Archive, len(list))
	for i := range list {
		archives[i] = parcel.Archive(list[i])
	}
	data, err := parcel.Repack(archives)
	if base := s.FilesBase(l.runtime()); err == nil && base != "" {
		data, err = parcel.Below(data, base)
	}
	if err != nil && core.CodeOf(err) == core.Internal {
		return nil, front.Errorf("files: %v", err)
	}
	return data, err
}
