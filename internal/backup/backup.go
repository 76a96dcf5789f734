package backup

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"bireme.dev/bireme/internal/core"
)

// Form is the version of the archive's form that this program writes, and the newest it reads.
const Form = 1

// Kinds of database.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Names of members.
const (
	manifestName = "manifest.json"
	endName      = "end"
	logPrefix    = "logs/"
	Store        = "store"
	SealKey      = "seal.key"
	Settings     = "config.yml"
)

// Manifest says what an archive holds.
type Manifest struct {
	Form    int                `json:"form"`
	Version string             `json:"version"` // of the program that wrote it
	Made    time.Time          `json:"made"`
	Cluster string             `json:"cluster"`
	Kind    string             `json:"kind"`
	Schema  int64              `json:"schema"`
	Seq     int64              `json:"seq"`
	NextJob int64              `json:"next_job"`
	Logs    bool               `json:"logs"`
	Members map[string]*Member `json:"members"`
}

// Member is a file of the archive.
type Member struct {
	Size int64  `json:"size"`
	Sum  string `json:"sha256"`
	from string // where it is read from
}

// Source names what goes into an archive; empty paths are left out.
type Source struct {
	Store, SealKey, Settings string
	Logs                     string // a folder
}

// Write makes the archive path from files that nobody changes meanwhile; logs may grow, and are taken as long as they
// were when they were opened. It appears under its name when all of it is on disk.
func Write(path string, m Manifest, from Source) (err error) {
	m.Form, m.Members, m.Logs = Form, map[string]*Member{}, from.Logs != ""
	for name, file := range map[string]string{Store: from.Store, SealKey: from.SealKey, Settings: from.Settings} {
		if file == "" {
			continue
		}
		if m.Members[name], err = measure(file); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // of mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if err := errors.Join(writeTo(f, &m, from.Logs), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func measure(file string) (*Member, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	if err != nil {
		return nil, err
	}
	return &Member{Size: n, Sum: hex.EncodeToString(h.Sum(nil)), from: file}, nil
}

func writeTo(w io.Writer, m *Manifest, logs string) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	head, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := writeBytes(t, manifestName, head, m.Made); err != nil {
		return err
	}
	for _, name := range []string{Store, SealKey, Settings} {
		if x := m.Members[name]; x != nil {
			if err := writeFile(t, name, x.from, x.Size, m.Made); err != nil {
				return err
			}
		}
	}
	if logs != "" {
		if err := writeLogs(t, logs); err != nil {
			return err
		}
	}
	if err := writeBytes(t, endName, nil, m.Made); err != nil {
		return err
	}
	return errors.Join(t.Close(), z.Close())
}

func writeBytes(t *tar.Writer, name string, b []byte, at time.Time) error {
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(b)), ModTime: at}); err != nil {
		return err
	}
	_, err := t.Write(b)
	return err
}

func writeFile(t *tar.Writer, name, from string, size int64, at time.Time) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: at}); err != nil {
		return err
	}
	if _, err := io.CopyN(t, f, size); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// writeLogs adds the files below a folder. One that goes meanwhile was purged.
func writeLogs(t *tar.Writer, folder string) error {
	return filepath.WalkDir(folder, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		st, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(folder, p)
		if err != nil {
			return err
		}
		err = writeFile(t, logPrefix+filepath.ToSlash(rel), p, st.Size(), st.ModTime())
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// maxManifest bounds what is read before anything is known of an archive.
const maxManifest = 1 << 20

// Check reads a whole archive and returns its manifest; nothing is written.
func Check(file string) (*Manifest, error) { return read(file, nil) }

// Extract puts the members of an archive below a folder, which only its owner may enter. Check it first: what is found
// wrong on the way is an error, and leaves what was written.
func Extract(file, folder string) (*Manifest, error) {
	return read(file, func(name string, r io.Reader) error {
		to := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, r)
		return errors.Join(err, f.Sync(), f.Close())
	})
}

func damaged(file, format string, args ...any) error {
	return core.Errorf(core.Invalid, "%s is no whole backup: %s; nothing was changed, take another", file,
		fmt.Sprintf(format, args...))
}

// read goes through an archive; each gets every member but the manifest and the end.
func read(file string, each func(name string, r io.Reader) error) (*Manifest, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, damaged(file, "%v", err)
	}
	t := tar.NewReader(z)
	m, err := readManifest(file, t)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for !seen[endName] {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, damaged(file, "its end is missing")
		}
		if err != nil {
			return nil, damaged(file, "%v", err)
		}
		if err := m.admits(h, seen); err != nil {
			return nil, damaged(file, "%v", err)
		}
		seen[h.Name] = true
		if h.Name == endName {
			continue
		}
		if err := readMember(file, m, h, t, each); err != nil {
			return nil, err
		}
	}
	for name := range m.Members {
		if !seen[name] {
			return nil, damaged(file, "%s is missing", name)
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the compressed stream has a sum of its own
		return nil, damaged(file, "%v", err)
	}
	return m, nil
}

func readManifest(file string, t *tar.Reader) (*Manifest, error) {
	h, err := t.Next()
	if err != nil || h.Name != manifestName || h.Size > maxManifest {
		return nil, damaged(file, "it does not begin with a manifest")
	}
	var m Manifest
	if err := json.NewDecoder(t).Decode(&m); err != nil {
		return nil, damaged(file, "its manifest: %v", err)
	}
	switch {
	case m.Form > Form:
		return nil, core.Errorf(
			core.Invalid,
			"%s was written by biremed %s in form %d, this program reads up to %d: use that "+
				"version or a newer one",
			file,
			m.Version,
			m.Form,
			Form,
		)
	case m.Form < 1 || m.Kind != SQLite && m.Kind != Postgres || m.Members[Store] == nil:
		return nil, damaged(file, "its manifest names no database")
	}
	return &m, nil
}

// admits refuses members that an archive of ours has not.
func (m *Manifest) admits(h *tar.Header, seen map[string]bool) error {
	switch {
	case h.Typeflag != tar.TypeReg:
		return fmt.Errorf("%q is no plain file", h.Name)
	case seen[h.Name]:
		return fmt.Errorf("%q is in it twice", h.Name)
	case h.Name == endName:
		return nil
	case m.Members[h.Name] != nil && (h.Name == Store || h.Name == SealKey || h.Name == Settings):
		if h.Size != m.Members[h.Name].Size {
			return fmt.Errorf("%s has %d bytes, its manifest says %d", h.Name, h.Size, m.Members[h.Name].Size)
		}
		return nil
	case m.Logs && strings.HasPrefix(h.Name, logPrefix) && path.Clean(h.Name) == h.Name && filepath.IsLocal(h.Name):
		return nil
	}
	return fmt.Errorf("%q is not of a backup", h.Name)
}

func readMember(file string, m *Manifest, h *tar.Header, r io.Reader, each func(string, io.Reader) error) error {
	sum := sha256.New()
	tee := io.TeeReader(r, sum)
	if each != nil {
		if err := each(h.Name, tee); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return damaged(file, "%s: %v", h.Name, err)
	}
	if x := m.Members[h.Name]; x != nil && hex.EncodeToString(sum.Sum(nil)) != x.Sum {
		return damaged(file, "%s is not what its manifest says", h.Name)
	}
	return nil
}
