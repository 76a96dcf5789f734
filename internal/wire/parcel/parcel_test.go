package parcel

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func write0(t *testing.T, name, text string, mode fs.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// tree tells of everything below a directory.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || at == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, at)
		fmt.Fprintf(&b, "%s %v", rel, info.Mode())
		switch {
		case info.Mode().IsRegular():
			text, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", text)
		case info.Mode().Type() == fs.ModeSymlink:
			to, err := os.Readlink(at)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " -> %s", to)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFilesArriveAsTheyWere(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	write0(t, from+"/one.txt", "one", 0o640)
	write0(t, from+"/src/run.sh", "#!/bin/sh\n", 0o755)
	write0(t, from+"/src/closed/x", "", 0o400)
	for link, target := range map[string]string{"src/link": "closed/x", "src/away": "/etc", "top": "src"} {
		if err := os.Symlink(target, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(from+"/src/closed", 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, d := range []string{from + "/src/closed", to + "/work/src/closed", to + "/home/code/closed"} {
			_ = os.Chmod(d, 0o700) // for the removal
		}
	})
	items := []Item{
		{from + "/one.txt", "one.txt"},
		{from + "/src", "src"},
		{from + "/top", "~/code"},
		{from + "/one.txt", to + "/abs/deep/two.txt"},
	}
	data, err := Pack(items)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Pack(items); err != nil || !bytes.Equal(data, again) {
		t.Errorf("the same files make another parcel: %v", err)
	}
	write0(t, to+"/work/src/run.sh", "old", 0o600)
	write0(t, to+"/work/src/other", "stays", 0o644)
	if err := Unpack(data, to+"/work", to+"/home"); err != nil {
		t.Fatal(err)
	}
	const folder = `
AT drwxr-xr-x
AT/away Lrwxrwxrwx -> /etc
AT/closed dr-x------
AT/closed/x -r-------- ""
AT/link Lrwxrwxrwx -> closed/x
`
	want := `abs drwxr-xr-x
abs/deep drwxr-xr-x
abs/deep/two.txt -rw-r----- "one"
home drwxr-xr-x` + strings.ReplaceAll(folder, "AT", "home/code") + `home/code/run.sh -rwxr-xr-x "#!/bin/sh\n"
work drwxr-xr-x
work/one.txt -rw-r----- "one"` + strings.ReplaceAll(folder, "AT", "work/src") + `work/src/other -rw-r--r-- "stays"
work/src/run.sh -rwxr-xr-x "#!/bin/sh\n"
`
	if got := tree(t, to); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatCannotBePacked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write0(t, dir+"/a", "a", 0o644)
	if err := os.Truncate(dir+"/a", Max-4096); err != nil {
		t.Fatal(err)
	}
	if _, err := Pack([]Item{{dir + "/a", "a"}}); err != nil {
		t.Errorf("one that just fits: %v", err)
	}
	if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for want, items := range map[string][]Item{
		"files[1]: " + dir + "/a: together with what comes before it has more than the 8 MiB": {
			{dir + "/a", "a"},
			{dir + "/a", "b"},
		},
		"files[0]: " + dir + "/none: no such file or directory":                 {{dir + "/none", "a"}},
		"files[0]: " + dir + "/pipe: is neither a file nor a folder nor a link": {{dir + "/pipe", "a"}},
	} {
		if _, err := Pack(items); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

// A parcel comes from whoever submits. What it writes is written with the rights of the job's user, and only where
// its list says.
func TestNothingLeavesItsPlace(t *testing.T) {
	t.Parallel()
	type member struct {
		name, link, text string
		typ              byte
	}
	folder := member{name: "0/", typ: tar.TypeDir}
	for name, tc := range map[string]struct {
		members []member
		bad     bool // refused before anything is tried
	}{
		"parent":   {[]member{folder, {name: "0/../x", typ: tar.TypeReg}}, true},
		"absolute": {[]member{folder, {name: "0//x", typ: tar.TypeReg}}, true},
		"link out": {[]member{
			folder,
			{name: "0/l", link: "OUT", typ: tar.TypeSymlink},
			{name: "0/l/x", typ: tar.TypeReg},
		}, false},
		"relative link out": {[]member{
			folder,
			{name: "0/l", link: "../out", typ: tar.TypeSymlink},
			{name: "0/l/x", typ: tar.TypeReg},
		}, false},
		"folder by a link": {[]member{
			folder,
			{name: "0/l", link: "OUT", typ: tar.TypeSymlink},
			{name: "0/l/", typ: tar.TypeDir},
		}, false},
		"link there before": {[]member{folder, {name: "0/there/x", typ: tar.TypeReg}}, false},
		"hard link":         {[]member{folder, {name: "0/l", link: "OUT/secret", typ: tar.TypeLink}}, true},
		"device":            {[]member{folder, {name: "0/l", typ: tar.TypeChar}}, true},
		"other item":        {[]member{folder, {name: "1/x", typ: tar.TypeReg}}, true},
		"no item":           {[]member{{name: "7", typ: tar.TypeReg}}, true},
		"negative":          {[]member{{name: "-1", typ: tar.TypeReg}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			out := dir + "/out"
			write0(t, out+"/secret", "s", 0o600)
			write0(t, dir+"/work/in/a", "", 0o600)
			if err := os.Symlink(out, dir+"/work/in/there"); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			for _, m := range append([]member{{name: listName, typ: tar.TypeReg, text: `["in","two"]`}}, tc.members...) {
				h := &tar.Header{
					Name: m.name, Linkname: strings.ReplaceAll(m.link, "OUT", out), Typeflag: m.typ, Mode: 0o644,
					Size: int64(len(m.text)),
				}
				if err := w.WriteHeader(h); err != nil {
					t.Fatal(err)
				}
				if _, err := w.Write([]byte(m.text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			before := tree(t, out)
			err := Unpack(b.Bytes(), dir+"/work", dir)
			if err == nil || errors.Is(err, ErrBad) != tc.bad {
				t.Errorf("unpacked: %v", err)
			}
			if after := tree(t, out); after != before {
				t.Errorf("outside there is now\n%s", after)
			}
		})
	}
}

func TestWhatIsNoParcel(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "x", strings.Repeat("\x00", 1024)} {
		if err := Unpack([]byte(data), t.TempDir(), "/"); !errors.Is(err, ErrBad) {
			t.Errorf("%.10q: %v", data, err)
		}
	}
}
