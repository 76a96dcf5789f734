package client

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The owner of a socket's directory may listen there, if nobody else could have made the directory.
func TestPathOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes folders of other users")
	}
	const alice, mallory, caller = 4001, 4002, 4003
	base := t.TempDir()
	mk := func(name string, uid int, mode os.FileMode) string {
		t.Helper()
		dir := filepath.Join(base, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	link := func(to, name string, uid int) string {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Lchown(filepath.Join(base, name), uid, uid); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(base, name)
	}
	mk("home", 0, 0o755)
	own := mk("home/alice", alice, 0o755)
	mk("tmp", 0, 0o777|os.ModeSticky)
	for name, tc := range map[string]struct {
		dir      string
		listener uint32
		ok       bool
	}{
		"the owner of the folder":                {own, alice, true},
		"root, anywhere":                         {filepath.Join(base, "tmp"), 0, true},
		"the caller, anywhere":                   {filepath.Join(base, "tmp"), caller, true},
		"another in the owner's folder":          {own, mallory, false},
		"another in a folder of root's":          {mk("run", 0, 0o755), mallory, false},
		"in a folder everybody writes to":        {filepath.Join(base, "tmp"), mallory, false},
		"a folder made in such a one":            {mk("tmp/b", mallory, 0o755), mallory, false},
		"a folder of another's in such a one":    {mk("tmp/c", alice, 0o755), alice, false},
		"a folder of root's in such a one":       {mk("tmp/d", 0, 0o755), mallory, false},
		"a folder the group writes to":           {mk("group", alice, 0o775), mallory, false},
		"a link of root's to the owner's":        {link(own, "link", 0), alice, true},
		"a link in a folder everybody writes to": {link(own, "tmp/link", mallory), alice, false},
		"a folder that is not there":             {filepath.Join(base, "none"), mallory, false},
	} {
		err := listenerAt(filepath.Join(tc.dir, "s"), tc.listener, caller)
		if (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "nothing was sent") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPlainHTTPIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := New(Settings{Servers: []string{"http://127.0.0.1:7440"}}); err == nil ||
		!strings.Contains(err.Error(), "https://127.0.0.1:7440") {
		t.Errorf("%v", err)
	}
	if c, err := New(Settings{Servers: []string{"http+insecure://127.0.0.1:7440"}}); err != nil ||
		c.ends[0].base != "http://127.0.0.1:7440" {
		t.Errorf("%v", err)
	}
}

// A daemon works in directories of its own user and of root, which nobody else may write to or have made.
func TestFolderOf(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes folders of other users")
	}
	const alice, mallory = 4001, 4002
	base := t.TempDir()
	mk := func(name string, uid int, mode os.FileMode) string {
		t.Helper()
		dir := filepath.Join(base, name)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chmod(dir, mode), os.Chown(dir, uid, uid)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	open := mk("tmp", 0, 0o777|os.ModeSticky)
	if err := errors.Join(os.Symlink(mk("root", 0, 0o755), filepath.Join(open, "link")),
		os.Lchown(filepath.Join(open, "link"), mallory, mallory)); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		dir  string
		self uint32
		ok   bool
	}{
		"one's own":                    {mk("alice", alice, 0o755), alice, true},
		"one's own, for its group too": {mk("group", alice, 0o775), alice, true},
		"one's own in /tmp":            {mk("tmp/alice", alice, 0o755), alice, true},
		"root's":                       {mk("srv", 0, 0o755), alice, true},
		"another's, for root":          {mk("mallory", mallory, 0o755), 0, false},
		"another's in /tmp, for root":  {mk("tmp/b", mallory, 0o700), 0, false},
		"another's in /tmp":            {mk("tmp/c", mallory, 0o777), alice, false},
		"below another's in /tmp":      {mk("tmp/b/nodes", 0, 0o755), 0, false},
		"a link of another's to ours":  {filepath.Join(open, "link"), 0, false},
		"everybody's":                  {mk("all", 0, 0o777), 0, false},
		"/tmp itself":                  {open, 0, false},
	} {
		if err := folderOf(tc.dir, tc.self); (err == nil) != tc.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
