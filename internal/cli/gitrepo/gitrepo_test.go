package gitrepo

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// shell runs git commands in a directory, with nobody's settings.
func shell(t *testing.T, dir string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		cmd := exec.Command("sh", "-ec", l)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", l, err, out)
		}
	}
}

// TestLocal: what a working copy has beyond its remote branch makes that branch the working copy, and nothing of it is
// touched.
func TestLocal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell(t, dir, "git init -q --bare up.git", "git clone -q up.git w 2>/dev/null")
	w := filepath.Join(dir, "w")
	shell(t, w, "git checkout -q -b main; echo one > a; echo '*.o' > .gitignore; git add .; git commit -qm 1",
		"git push -q -u origin main",
		"echo two >> a; echo new > b; echo no > c.o; printf '\\0\\1' > bin; echo three > d; git add d; git commit -qm 2")
	r, err := Local(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	if r.Branch != "main" || len(r.Hash) != 40 || !strings.HasSuffix(r.URL, "up.git") || r.Diff == nil {
		t.Fatalf("%+v", r)
	}
	status, err := exec.Command("git", "-C", w, "status", "--porcelain").Output()
	if err != nil || !strings.Contains(string(status), "?? b") {
		t.Errorf("the working copy was touched: %s %v", status, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "patch"), r.Diff, 0o600); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, "git clone -q up.git x; git -C x checkout -q "+r.Hash, "git -C x apply ../patch")
	for _, f := range []string{"a", "b", "bin", "d"} {
		one, err1 := os.ReadFile(filepath.Join(w, f))
		two, err2 := os.ReadFile(filepath.Join(dir, "x", f))
		if err1 != nil || err2 != nil || string(one) != string(two) {
			t.Errorf("%s is %q in the working copy and %q in the run (%v, %v)", f, one, two, err1, err2)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x", "c.o")); err == nil {
		t.Error("a file that git ignores came along")
	}
}

// TestLocalRefuses: what cannot be cloned elsewhere is refused with what to do.
func TestLocalRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell(t, dir, "mkdir none",
		"git init -q alone; cd alone; git checkout -q -b main; echo a > a; git add a; git commit -qm a",
		"git clone -q alone detached; cd detached; git checkout -q --detach")
	for name, want := range map[string]string{
		"missing": "no such folder", "none": "not a git repository", "alone": "has no remote branch; push it first",
		"detached": "HEAD is detached",
	} {
		if _, err := Local(t.Context(), filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestID: a repository has one name, however its address is written.
func TestID(t *testing.T) {
	t.Parallel()
	want := Remote("https://example.com/o/r", "", "").ID()
	for _, at := range []string{
		"https://example.com/o/r.git", "git@example.com:o/r.git", "ssh://git@example.com/o/r",
		"https://u:p@example.com/o/r/",
	} {
		if got := Remote(at, "", "").ID(); got != want {
			t.Errorf("%s is another repository", at)
		}
	}
	if Remote("https://example.com/o/r2", "", "").ID() == want ||
		Remote("git@example.com:o/r.git", "", "").ShortName() != "r" {
		t.Error("names are wrong")
	}
}
