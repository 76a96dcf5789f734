package backup

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bireme.dev/bireme/internal/core"
)

// sample writes an archive of small files and returns its path.
func sample(t *testing.T, logs bool) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	from := Source{
		Store: put("db", strings.Repeat("database ", 1000)), SealKey: put("key", "key 1\n"),
		Settings: put("conf", "cluster: lab\n"),
	}
	if logs {
		put("log/1/0", "line\n")
		from.Logs = filepath.Join(dir, "log")
	}
	file := filepath.Join(dir, "x.backup")
	m := Manifest{Version: "test", Made: time.Unix(1e9, 0), Cluster: "lab", Kind: SQLite, Schema: 11, Seq: 7, NextJob: 9}
	if err := Write(file, m, from); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	file := sample(t, true)
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Fatalf("its mode: %v, %v", st.Mode(), err)
	}
	m, err := Check(file)
	if err != nil {
		t.Fatal(err)
	}
	if m.Cluster != "lab" || m.Seq != 7 || m.NextJob != 9 || !m.Logs || len(m.Members) != 3 {
		t.Errorf("manifest %+v", m)
	}
	to := t.TempDir()
	if _, err := Extract(file, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		Store: strings.Repeat("database ", 1000), SealKey: "key 1\n", Settings: "cluster: lab\n", "logs/1/0": "line\n",
	} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
}

// An archive of which any part is missing, or any byte is another, is refused before anything is put in place.
func TestHalfABackup(t *testing.T) {
	t.Parallel()
	whole, err := os.ReadFile(sample(t, false))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "half")
	refused := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Check(file)
		var e *core.Error
		if !errors.As(err, &e) || e.Code != core.Invalid || !strings.Contains(e.Message, file) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := 0; n < len(whole); n += 3 {
		refused("cut off", whole[:n])
	}
	for n := 10; n < len(whole); n += 5 { // not the header's time and flags, which say nothing
		b := slices.Clone(whole)
		b[n] ^= 0x40
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "to")
		if _, err := Extract(file, to); err != nil {
			continue
		}
		// A few bits of the compressed form mean nothing.
		if got, err := os.ReadFile(filepath.Join(to, SealKey)); err != nil || string(got) != "key 1\n" {
			t.Errorf("with byte %d another, the key is %q, %v", n, got, err)
		}
	}
	refused("empty", nil)
}

// Members that would be written elsewhere, or that no backup of ours has, are refused.
func TestForeignMembers(t *testing.T) {
	t.Parallel()
	tests := map[string]tar.Header{
		"outside":   {Name: "../x", Typeflag: tar.TypeReg},
		"log above": {Name: "logs/../../x", Typeflag: tar.TypeReg},
		"absolute":  {Name: "/etc/passwd", Typeflag: tar.TypeReg},
		"link":      {Name: "logs/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		"unknown":   {Name: "more", Typeflag: tar.TypeReg},
		"twice":     {Name: Store, Typeflag: tar.TypeReg},
	}
	for name, h := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "x")
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			z := gzip.NewWriter(f)
			w := tar.NewWriter(z)
			const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
			manifest := `{"form":1,"kind":"sqlite","logs":true,"members":{"store":{"size":0,"sha256":"` + empty + `"}}}`
			members := []tar.Header{
				{Name: manifestName, Size: int64(len(manifest)), Typeflag: tar.TypeReg}, {Name: Store, Typeflag: tar.TypeReg}, h,
			}
			for i, m := range members {
				if err := w.WriteHeader(&m); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					if _, err := io.WriteString(w, manifest); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := errors.Join(w.Close(), z.Close(), f.Close()); err != nil {
				t.Fatal(err)
			}
			to := t.TempDir()
			if _, err := Extract(file, filepath.Join(to, "in")); err == nil ||
				!strings.Contains(err.Error(), "no whole backup") {
				t.Errorf("it was taken: %v", err)
			}
			if left, err := os.ReadDir(to); err != nil || len(left) > 1 {
				t.Errorf("it wrote outside: %v, %v", left, err)
			}
		})
	}
}

func TestNewerForm(t *testing.T) {
	t.Parallel()
	var m Manifest
	m.Form = Form
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	if err := os.WriteFile(db, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x")
	if err := Write(file, Manifest{Kind: "other"}, Source{Store: db}); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(file); err == nil || !strings.Contains(err.Error(), "names no database") {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []string
	for day := 1; day <= 5; day++ {
		all = append(all, Name(time.Date(2026, 1, day, 12, 0, 0, 0, time.UTC)))
	}
	for _, name := range append(all, "mine.backup", "bireme-old.backup") {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := Prune(dir, 2)
	if err != nil || !slices.Equal(gone, all[:3]) {
		t.Errorf("removed %v, %v; want %v", gone, err, all[:3])
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("left %v, %v", left, err)
	}
	if at, err := Latest(dir); err != nil || at.Day() != 5 {
		t.Errorf("the newest is of %v, %v", at, err)
	}
}
