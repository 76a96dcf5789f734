package parcel

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// packed is a parcel of a file, and of a folder with a file and a link.
func packed(t *testing.T, file, folder string) []byte {
	t.Helper()
	src := t.TempDir()
	write0(t, filepath.Join(src, "one"), "1", 0o640)
	write0(t, filepath.Join(src, "d", "two"), "22", 0o755)
	if err := os.Symlink("two", filepath.Join(src, "d", "link")); err != nil {
		t.Fatal(err)
	}
	data, err := Pack([]Item{{filepath.Join(src, "one"), file}, {filepath.Join(src, "d"), folder}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// noted is what Lay said it did.
type noted map[string]Note

func (n noted) note(what Note, path string) error { n[path] = what; return nil }

func (n noted) all(what Note, dir string) string {
	var list []string
	for path, w := range n {
		if rel, err := filepath.Rel(dir, path); err == nil && w == what && rel != "." {
			list = append(list, rel)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func (n noted) made() (list []string) {
	for path, w := range n {
		if w == Made {
			list = append(list, path)
		}
	}
	return list
}

// TestLay: a parcel is laid out beside what is there, and only what was made is removed again.
func TestLay(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	data := packed(t, "work/one", "~/code")
	write0(t, filepath.Join(home, "code", "two"), "22", 0o644) // the user's own, the same
	first := noted{}
	if err := Lay(data, home, home, first.note); err != nil {
		t.Fatal(err)
	}
	if got := first.all(Made, home); got != "code/link work work/one" {
		t.Errorf("made: %s", got)
	}
	if got := first.all(Found, home); got != "code code/two" {
		t.Errorf("found: %s", got)
	}
	all := tree(t, home)
	second := noted{}
	if err := Lay(data, home, home, second.note); err != nil || len(second.made()) > 0 || tree(t, home) != all {
		t.Errorf("again: %v, made %v", err, second.made())
	}
	write0(t, filepath.Join(home, "work", "result"), "kept", 0o644)
	if err := Remove(first.made()); err != nil {
		t.Fatal(err)
	}
	if got, want := tree(t, home), "code drwxr-xr-x\ncode/two -rw-r--r-- \"22\"\nwork drwxr-xr-x\nwork/result "+
		"-rw-r--r-- \"kept\"\n"; got != want {
		t.Errorf("left:\n%swant:\n%s", got, want)
	}
	if err := Remove(first.made()); err != nil {
		t.Errorf("nothing to remove: %v", err)
	}
}

// TestLayReplacesNothing: what differs is left, and said.
func TestLayReplacesNothing(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(home string) error{
		"another file":   func(home string) error { return os.WriteFile(filepath.Join(home, "one"), []byte("2"), 0o644) },
		"a folder":       func(home string) error { return os.Mkdir(filepath.Join(home, "one"), 0o755) },
		"a link":         func(home string) error { return os.Symlink("/etc/hostname", filepath.Join(home, "one")) },
		"a broken link":  func(home string) error { return os.Symlink("no", filepath.Join(home, "one")) },
		"another inside": func(home string) error { return writeIn(home, "code", "two") },
		"no link":        func(home string) error { return writeIn(home, "code", "link") },
	} {
		home := t.TempDir()
		if err := prepare(home); err != nil {
			t.Fatal(err)
		}
		before := tree(t, home)
		n := noted{}
		if err := Lay(packed(t, "one", "code"), home, home, n.note); !errors.Is(err, ErrDiffers) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Remove(n.made()); err != nil || tree(t, home) != before {
			t.Errorf("%s: %v; left:\n%swant:\n%s", name, err, tree(t, home), before)
		}
	}
}

func writeIn(home, dir, name string) error {
	if err := os.MkdirAll(filepath.Join(home, dir), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, dir, name), []byte("x"), 0o644)
}

// TestBelow: relative items get a base, others stay.
func TestBelow(t *testing.T) {
	t.Parallel()
	data, err := Below(packed(t, "a/one", "/tmp/code"), "~/work")
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := targets(data)
	if err != nil || !slices.Equal(list, []string{"~/work/a/one", "/tmp/code"}) {
		t.Errorf("%q, %v", list, err)
	}
	if _, err := Below([]byte("no parcel"), "~"); !errors.Is(err, ErrBad) {
		t.Errorf("no parcel: %v", err)
	}
	dir := t.TempDir()
	items, err := Stage(data, dir)
	if err != nil || len(items) != 2 || items[0].Path != "~/work/a/one" {
		t.Fatalf("%v, %v", items, err)
	}
	if got, err := os.ReadFile(items[0].Local); err != nil || string(got) != "1" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(items[1].Local, "link")); err != nil || string(got) != "22" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLayHostile: a parcel of a few bytes that stands for a large file, and one with an endless path, make nothing.
func TestLayHostile(t *testing.T) {
	t.Parallel()
	head, err := relist([]string{"one"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var sparse bytes.Buffer
	sparse.Write(head)
	w := tar.NewWriter(&sparse)
	const holes = "1\n1099511627776\n0\n" // one region, of no bytes, at the end of 1 TiB
	block := holes + strings.Repeat("\x00", tarBlock-len(holes))
	if err := writeRaw(w, &sparse, block); err != nil {
		t.Fatal(err)
	}
	long, err := relist([]string{strings.Repeat("a/", 1<<20)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"sparse": sparse.Bytes(), "long": long} {
		home, n := t.TempDir(), noted{}
		if err := Lay(data, home, home, n.note); !errors.Is(err, ErrBad) || len(n) > 0 {
			t.Errorf("%s: %v, noted %d", name, err, len(n))
		}
	}
}

// writeRaw writes a member in the sparse format 1.0 of GNU tar, which archive/tar reads and does not write.
func writeRaw(w *tar.Writer, to *bytes.Buffer, block string) error {
	pax := ""
	for _, kv := range []string{
		"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=0", "GNU.sparse.realsize=1099511627776",
	} {
		n := len(kv) + 4 // with two digits, a blank and the end of the line
		pax += strconv.Itoa(n) + " " + kv + "\n"
	}
	if err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: "x", Size: int64(len(pax)), Format: tar.FormatUSTAR, Mode: 0o600,
	}); err != nil {
		return err
	}
	at := to.Len() - tarBlock
	if _, err := w.Write([]byte(pax)); err != nil {
		return err
	}
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "0", Size: int64(len(block)), Mode: 0o600})
	if err != nil {
		return err
	}
	if _, err := w.Write([]byte(block)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	head := to.Bytes()[at : at+tarBlock] // what archive/tar does not let write: the type of a header of records
	head[156] = tar.TypeXHeader
	copy(head[148:], "        ")
	sum := 0
	for _, c := range head {
		sum += int(c)
	}
	copy(head[148:], fmt.Sprintf("%06o\x00 ", sum))
	return nil
}
