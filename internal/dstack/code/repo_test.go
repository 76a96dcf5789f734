package code

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sh runs a script and gives what it wrote.
func sh(t *testing.T, dir, script string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a",
		"GIT_AUTHOR_EMAIL=a@b.c", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.c",
	}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// origin makes a repository with two branches and gives its URL and first commit.
func origin(t *testing.T) (url, first string) {
	t.Helper()
	dir := t.TempDir()
	out, err := sh(t, dir, `set -e
git init -q -b main repo; cd repo
echo one >a; git add a; git commit -qm one; git rev-parse HEAD
echo two >a; echo b >b; git add a b; git commit -qm two
git checkout -qb side; echo side >a; git commit -qam side; git checkout -q main`)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "file://" + filepath.Join(dir, "repo"), strings.TrimSpace(out)
}

func TestScript(t *testing.T) {
	t.Parallel()
	url, first := origin(t)
	for name, tc := range map[string]struct {
		repo   Repo
		before string // what is done in the folder first
		after  string
		want   string
		fails  bool
	}{
		"newest": {repo: Repo{URL: url, Dir: "."}, after: "cat a b", want: "two\nb\n"},
		"below": {
			repo:  Repo{URL: url, Dir: "x/it's", SingleBranch: true},
			after: `cat "$DSTACK_REPO_DIR/a"; basename "$DSTACK_REPO_DIR"`,
			want:  "two\nit's\n",
		},
		"home":   {repo: Repo{URL: url, Dir: "~/code"}, after: "cat ~/code/a", want: "two\n"},
		"branch": {repo: Repo{URL: url, Branch: "side", Dir: "r"}, after: "cat r/a", want: "side\n"},
		"commit": {
			repo: Repo{URL: url, Hash: first, Dir: "r"}, after: "cat r/a; git -C r status -s", want: "one\n",
		},
		"branch and commit": {
			repo:  Repo{URL: url, Branch: "main", Hash: first, Dir: "r", SingleBranch: true},
			after: "cat r/a; git -C r branch --show-current", want: "one\nmain\n",
		},
		"changes": {
			repo: Repo{URL: url, Dir: "r", Patch: "/tmp/none"}, fails: true, want: "the local changes do not apply",
		},
		"in the way": {repo: Repo{URL: url, Dir: "."}, before: "echo mine >z", fails: true, want: "is not empty"},
		"skipped": {
			repo: Repo{URL: url, Dir: ".", Skip: true}, before: "echo mine >z", after: "ls", want: "z\n",
		},
		"files stay": {
			repo: Repo{URL: url, Dir: ".", Files: true}, before: "echo mine >a", after: "cat a b", want: "mine\nb\n",
		},
		"files stay, commit": {
			repo: Repo{URL: url, Branch: "main", Hash: first, Dir: ".", Files: true}, before: "echo mine >z",
			after: "cat a z; git status -s", want: "one\nmine\n?? z\n",
		},
		"who commits": {
			repo:  Repo{URL: url, Dir: "r", Name: "Ann O'Nym", Email: "ann@x.y"},
			after: "git -C r config user.name; git -C r config user.email", want: "Ann O'Nym\nann@x.y\n",
		},
		"no such branch": {repo: Repo{URL: url, Branch: "no", Dir: "r"}, fails: true, want: "could not be brought"},
		"access": {
			repo: Repo{URL: "file:///nowhere", Dir: "r"}, after: `cat r/a; echo "<$BIREME_REPO_URL$BIREME_REPO_TOKEN>"`,
			want: "two\n<>\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if tc.before != "" {
				if out, err := sh(t, dir, tc.before); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			var env []string
			if name == "access" {
				a := Access{URL: url}
				token := "t0ken"
				a.Token = &token
				env = strings.Split(strings.TrimSuffix(string(a.Env()), "\x00"), "\x00")
			}
			out, err := sh(t, dir, tc.repo.Script()+tc.after, env...)
			if (err != nil) != tc.fails || tc.fails && !strings.Contains(out, tc.want) || !tc.fails && out != tc.want {
				t.Errorf("%v: %q, want %q", err, out, tc.want)
			}
		})
	}
}

// TestPatch: changes of the submitter's folder, new files included, are in the clone.
func TestPatch(t *testing.T) {
	t.Parallel()
	url, _ := origin(t)
	dir := t.TempDir()
	out, err := sh(t, dir, `set -e
git clone -q `+url+` work; cd work; echo changed >a; echo new >n; git add -N n; git diff --binary >../p
cd ..; rm -rf work`)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := Repo{URL: url, Dir: "r", Patch: filepath.Join(dir, "p")}
	out, err = sh(t, dir, r.Script()+"cat r/a r/n; ls")
	if err != nil || out != "changed\nnew\nr\n" {
		t.Errorf("%v: %q", err, out)
	}
}

// TestToken: git is answered by the token and by nothing that a command line shows.
func TestToken(t *testing.T) {
	t.Parallel()
	var a Access
	if err := json.Unmarshal([]byte(`{"clone_url":"u","private_key":null,"oauth_token":"s3"}`), &a); err != nil {
		t.Fatal(err)
	}
	if got := string(a.Env()); got != "BIREME_REPO_URL=u\x00BIREME_REPO_TOKEN=s3\x00" {
		t.Errorf("%q", got)
	}
	dir := t.TempDir()
	fake := filepath.Join(dir, "git")
	text := "#!/bin/sh\necho \"$@\"; $GIT_ASKPASS \"Username for x\"; $GIT_ASKPASS Password\nexit 1\n"
	if err := os.WriteFile(fake, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := sh(t, dir, (&Repo{URL: "u", Dir: "r"}).Script(), "BIREME_REPO_TOKEN=s3", "PATH="+dir+":"+os.Getenv("PATH"))
	if err == nil || !strings.HasPrefix(out, "clone -q -- u r\noauth2\ns3\n") {
		t.Errorf("%v: %q", err, out)
	}
}
