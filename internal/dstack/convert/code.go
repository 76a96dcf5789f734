package convert

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"path"
	"strings"

	"bireme.dev/bireme/internal/dstack/code"
	"bireme.dev/bireme/internal/dstack/config"
)

// repoData is what a client says of a run's repository.
type repoData struct {
	Type   string  `json:"repo_type"` // remote, local, virtual
	Branch *string `json:"repo_branch"`
	Hash   *string `json:"repo_hash"`
	Name   *string `json:"repo_config_name"`
	Email  *string `json:"repo_config_email"`
}

// repoData reads it; without any it is a virtual one.
func (s *Spec) repoData() repoData {
	d := repoData{Type: "virtual"}
	if len(s.RepoData) > 0 {
		_ = json.Unmarshal(s.RepoData, &d) // it was read before
	}
	return d
}

// repoDir is where the repository goes: as the configuration says, else the client; empty: the working directory.
func (s *Spec) repoDir() string {
	if list := s.Configuration.Run().Repos; len(list) > 0 {
		return list[0].Path
	}
	return config.Value(s.RepoDir)
}

// changesPath is the file with the submitter's changes to a repository, until they are applied. It is in the home of
// the run's user, where nobody else makes files of that name.
func changesPath(run string) string { return "~/.bireme-changes-" + run }

// repo is the repository that the run clones; nil: none.
func (s *Spec) repo(run string) *code.Repo {
	d := s.repoData()
	list := s.Configuration.Run().Repos
	if d.Type != "remote" {
		return nil
	}
	r := &code.Repo{
		Branch: config.Value(d.Branch), Hash: config.Value(d.Hash), Dir: s.repoDir(), Name: config.Value(d.Name),
		Email: config.Value(d.Email), SingleBranch: s.Configuration.DevEnvironment == nil,
	}
	if v := s.Configuration.Run().SingleBranch; v != nil {
		r.SingleBranch = *v
	}
	if len(list) > 0 {
		r.URL, r.Skip = config.Value(list[0].URL), list[0].IfExists == "skip"
	}
	if s.RepoCodeHash != nil {
		r.Patch = changesPath(run)
	}
	for _, f := range s.FileArchives {
		if !path.IsAbs(f.Path) && !strings.HasPrefix(f.Path, "~") {
			r.Files = true
		}
	}
	return r
}

// repository is the repository whose access the run needs when it is launched; empty: none.
func (s *Spec) repository() string {
	if s.repoData().Type != "remote" {
		return ""
	}
	return config.Value(s.RepoID)
}

// Archive is a tar that a client uploaded and where it goes, as package parcel takes it.
type Archive struct {
	Tar  []byte
	Path string
	// Inside: its members go below Path. Otherwise it has one file or folder, whose name gives way to Path.
	Inside bool
}

// Archives says what a launch lays out: the archives of files, in their order, and what was uploaded of the repository,
// nil if nothing was.
func (s *Spec) Archives(run string, files [][]byte, changes []byte) ([]Archive, error) {
	var out []Archive
	if changes != nil {
		switch s.repoData().Type {
		case "remote":
			one, err := tarOf(changes)
			if err != nil {
				return nil, err
			}
			out = append(out, Archive{Tar: one, Path: changesPath(run)})
		case "local":
			dir := s.repoDir()
			if dir == "" {
				dir = "."
			}
			out = append(out, Archive{Tar: changes, Path: dir, Inside: true})
		}
	}
	for i, f := range s.FileArchives {
		out = append(out, Archive{Tar: files[i], Path: f.Path})
	}
	return out, nil
}

// FilesBase is where relative files of a run of processes go: its working directory. It is empty for one that names
// none, whose nodes choose the folder, and for a run in containers, where files are placed inside.
func (s *Spec) FilesBase(runtime string) string {
	if s.Contained(runtime) {
		return ""
	}
	return config.Value(s.Configuration.Run().WorkingDir)
}

// tarOf is an archive of one file.
func tarOf(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "changes", Mode: 0o600, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	return b.Bytes(), err
}
