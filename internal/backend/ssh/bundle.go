package ssh

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"bireme.dev/bireme/internal/core"
)

// programs are what a node needs: its agent, the keeper of its jobs, the users' tool, and what starts containers and in
// them.
var programs = []string{"biremed", "bireme-step", "bireme", "bireme-container", "bireme-init"}

// Bundles packs programs for hosts, once for each kind of machine.
type Bundles struct {
	From  string // directory of the programs of this machine's kind; those of another are in its directory linux-ARCH
	Cache string // directory for the packed ones

	mu   sync.Mutex
	made map[string]*Bundle
}

// Bundle is programs packed for one kind of machine.
type Bundle struct {
	Sum  string     // names the content
	Size core.Bytes // unpacked
	file string
}

func (b *Bundle) open() (*os.File, error) { return os.Open(b.file) }

// For returns the programs of an architecture.
func (s *Bundles) For(arch string) (*Bundle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.made[arch]; b != nil {
		return b, nil
	}
	dir := s.From
	if arch != runtime.GOARCH {
		dir = filepath.Join(dir, "linux-"+arch)
	}
	b, sums, err := measure(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, core.Errorf(core.NotFound, "no agent for %s machines here: the server looks for it in %s: %v", arch,
			dir, errors.Unwrap(err)).Because("host_unsuitable")
	}
	if err != nil {
		return nil, err
	}
	b.file = filepath.Join(s.Cache, b.Sum+".tar.gz")
	if _, err := os.Stat(b.file); err != nil {
		if err := pack(b.file, dir, sums); err != nil {
			return nil, fmt.Errorf("pack the agent: %w", err)
		}
	}
	if s.made == nil {
		s.made = map[string]*Bundle{}
	}
	s.made[arch] = b
	s.tidy()
	return b, nil
}

// tidy removes what earlier versions were packed into, and what was cut off while it was packed.
func (s *Bundles) tidy() {
	keep := map[string]bool{}
	for _, b := range s.made {
		keep[b.file] = true
	}
	for _, form := range []string{"*.tar.gz", ".bundle-*"} {
		old, _ := filepath.Glob(filepath.Join(s.Cache, form)) // the form is right
		for _, file := range old {
			if !keep[file] {
				_ = os.Remove(file) // it is tried again with the next version
			}
		}
	}
}

// measure names the content of a directory's programs.
func measure(dir string) (*Bundle, []byte, error) {
	b := &Bundle{}
	var sums []byte
	for _, name := range programs {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, err
		}
		hash := sha256.New()
		n, err := io.Copy(hash, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, nil, err
		}
		b.Size += core.Bytes(n)
		sums = fmt.Appendf(sums, "%x  %s\n", hash.Sum(nil), name)
	}
	all := sha256.Sum256(sums)
	b.Sum = hex.EncodeToString(all[:8])
	return b, sums, nil
}

// pack writes the programs and their checksums as a compressed tar, all of it or nothing.
func pack(file, dir string, sums []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(file), ".bundle-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // gone after the rename
	z, err := gzip.NewWriterLevel(out, 4)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, name := range programs {
		if err := packFile(w, filepath.Join(dir, name)); err != nil {
			return errors.Join(err, out.Close())
		}
	}
	err = w.WriteHeader(&tar.Header{Name: "sums", Mode: 0o644, Size: int64(len(sums))})
	_, werr := w.Write(sums)
	if err := errors.Join(err, werr, w.Close(), z.Close(), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), file)
}

func packFile(w *tar.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: st.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}
