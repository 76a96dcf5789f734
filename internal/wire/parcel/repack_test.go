package parcel

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func tarOf(t *testing.T, list ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range list {
		text := h.Uname // the content, for a test
		h.Uname = ""
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestRepack: archives as dstack's clients make them, and others, come out where they are meant to be.
func TestRepack(t *testing.T) {
	t.Parallel()
	file := func(name, text string, mode int64) tar.Header {
		return tar.Header{Typeflag: tar.TypeReg, Name: name, Uname: text, Mode: mode}
	}
	dir := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o750} }
	data, err := Repack([]Archive{
		{Tar: tarOf(t, file("notes.txt", "n", 0o640)), Path: "notes.txt"},
		{
			Tar: tarOf(t, dir("conf/"), file("conf/a.ini", "a", 0o755), dir("conf/sub/"), file("conf/sub/b", "b", 0o600),
				tar.Header{Typeflag: tar.TypeSymlink, Name: "conf/l", Linkname: "/etc/passwd"}),
			Path: "other/place",
		},
		{Tar: tarOf(t, file("x/y/z", "z", 0o644)), Path: "deep"},
		{Tar: tarOf(t, file("./one", "1", 0o644), file("two/three", "3", 0o644)), Path: "repo", Inside: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	to := t.TempDir()
	if err := Unpack(data, to, to); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"notes.txt": "n", "other/place/a.ini": "a", "other/place/sub/b": "b", "deep/y/z": "z", "repo/one": "1",
		"repo/two/three": "3",
	} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if st, err := os.Stat(filepath.Join(to, "other/place/a.ini")); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", st, err)
	}
	if l, err := os.Readlink(filepath.Join(to, "other/place/l")); err != nil || l != "/etc/passwd" {
		t.Errorf("%q, %v", l, err)
	}
}

func TestRepackRefuses(t *testing.T) {
	t.Parallel()
	reg := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	many := make([]tar.Header, maxMembers+1)
	for i := range many {
		many[i] = tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "x"}
	}
	for name, tc := range map[string]struct {
		tar  []byte
		want string
	}{
		"above":    {tarOf(t, reg("../x")), "outside"},
		"within":   {tarOf(t, reg("a/../../x")), "outside"},
		"absolute": {tarOf(t, reg("/etc/x")), "outside"},
		"two":      {tarOf(t, reg("a"), reg("b")), "beside"},
		"device":   {tarOf(t, tar.Header{Typeflag: tar.TypeChar, Name: "d"}), "neither a file"},
		"hardlink": {tarOf(t, tar.Header{Typeflag: tar.TypeLink, Name: "d", Linkname: "/etc/shadow"}), "neither a file"},
		"no tar":   {[]byte(strings.Repeat("x", 600)), "the archive"},
		"empty":    {nil, "empty"},
		"large":    {tarOf(t, tar.Header{Typeflag: tar.TypeReg, Name: "a", Uname: strings.Repeat("x", Max)}), "MiB"},
		"many":     {tarOf(t, many...), "more than"},
	} {
		if _, err := Repack([]Archive{{Tar: tc.tar, Path: "x"}}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A link that is a directory's parent cannot lead out: what follows it is refused where it is laid out.
	data, err := Repack([]Archive{{Path: "p", Tar: tarOf(t, tar.Header{Typeflag: tar.TypeDir, Name: "d/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "d/l", Linkname: "/tmp"}, reg("d/l/evil"))}})
	to := t.TempDir()
	if err == nil {
		err = Unpack(data, to, to)
	}
	if err == nil {
		t.Error("a file was laid out through a link")
	}
}
