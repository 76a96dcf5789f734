// Package gitrepo reads the git repository that a run begins with: where it is cloned from, at which commit, and what
// of a working copy is not there. It runs the machine's git and changes nothing.
package gitrepo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
)

// Repo is a repository as a run takes it.
type Repo struct {
	URL         string // to clone from
	Branch      string // empty: its default one
	Hash        string // commit; empty: the newest
	Name, Email string // what commits in it are made as; empty: as git finds out
	Diff        []byte // what a working copy has and the commit has not; nil: nothing
}

// Access is what opens a private repository.
type Access struct {
	Token    string
	Identity string // file of a private key
}

// ID names the repository: the same for all ways to write its address.
func (r *Repo) ID() string {
	sum := sha256.Sum256([]byte(address(r.URL)))
	return fmt.Sprintf("%x", sum[:16])
}

// ShortName is the last part of its address.
func (r *Repo) ShortName() string { return strings.TrimSuffix(path.Base(address(r.URL)), ".git") }

// address is an address without what differs between ways to get there: scheme, user, ".git".
func address(text string) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		text = u.Host + u.Path
	} else if at, rest, ok := strings.Cut(text, "@"); ok && !strings.Contains(at, "/") {
		text = strings.Replace(rest, ":", "/", 1)
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "/"), ".git")
}

// Remote is a repository by its address. Without a branch and a commit it is the newest of its default branch.
func Remote(address, branch, hash string) *Repo {
	return &Repo{URL: address, Branch: branch, Hash: hash}
}

// maxDiff bounds what a working copy may have beyond its commit, in bytes.
const maxDiff = 2 << 20

// Local reads a working copy: its remote, branch and commit, and the changes since, with files that git does not know
// and does not ignore.
func Local(ctx context.Context, dir string) (*Repo, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, fmt.Errorf("%s: no such folder", dir)
	}
	g := git{ctx: ctx, dir: dir}
	top, err := g.line("rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s is not a git repository: %w", dir, err)
	}
	g.dir = top
	branch, err := g.line("symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return nil, fmt.Errorf("%s: HEAD is detached; check out a branch, or name url, branch and hash", dir)
	}
	upstream, err := g.line("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}")
	if err != nil {
		return nil, fmt.Errorf("%s: branch %s has no remote branch; push it first (git push -u origin %[2]s)", dir, branch)
	}
	remote, err := g.line("config", "branch."+branch+".remote")
	if err != nil {
		return nil, err
	}
	r := &Repo{}
	if r.URL, err = g.line("remote", "get-url", remote); err != nil {
		return nil, err
	}
	r.Branch = strings.TrimPrefix(upstream, remote+"/")
	if r.Hash, err = g.line("rev-parse", upstream); err != nil {
		return nil, err
	}
	r.Name, _ = g.line("config", "user.name") // may not be set
	r.Email, _ = g.line("config", "user.email")
	r.Diff, err = g.changes(r.Hash)
	return r, err
}

// git runs git in a directory.
type git struct {
	ctx context.Context
	dir string
	env []string
}

func (g git) run(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(g.ctx, "git", append([]string{"-C", g.dir}, args...)...)
	cmd.Env = append(append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "LC_ALL=C"), g.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errors.New("there is no git program in PATH")
	}
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(strings.TrimSpace(errs.String()), "fatal: "))
	}
	return out.Bytes(), nil
}

func (g git) line(args ...string) (string, error) {
	out, err := g.run(args...)
	return strings.TrimSpace(string(out)), err
}

// changes is a patch from the commit to the working copy. Files that git does not know are added in an index of its
// own, so that the user's stays as it is.
func (g git) changes(hash string) ([]byte, error) {
	tmp, err := os.CreateTemp("", "bireme-index-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(tmp.Name())
	if err := tmp.Close(); err != nil {
		return nil, err
	}
	if err := os.Remove(tmp.Name()); err != nil { // git makes it
		return nil, err
	}
	g.env = []string{"GIT_INDEX_FILE=" + tmp.Name()}
	if _, err := g.run("read-tree", "HEAD"); err != nil {
		return nil, err
	}
	if _, err := g.run("add", "--all", "--intent-to-add"); err != nil {
		return nil, err
	}
	diff, err := g.run("diff", "--no-ext-diff", "--no-color", "--binary", "--full-index", "--src-prefix=a/",
		"--dst-prefix=b/", hash)
	switch {
	case err != nil:
		return nil, err
	case len(diff) > maxDiff:
		return nil, fmt.Errorf("%s: the changes that are not pushed have %d bytes, the limit is %d; push them, or list "+
			"large files in .gitignore", g.dir, len(diff), maxDiff)
	case len(diff) == 0:
		return nil, nil
	}
	return diff, nil
}

// Check sees that the repository can be cloned with an access, by asking it for its branches.
func (r *Repo) Check(ctx context.Context, a Access) error {
	g := git{ctx: ctx, dir: "."}
	at := r.URL
	if a.Token != "" {
		u, err := url.Parse(r.URL)
		if err != nil || u.Scheme != "https" {
			return fmt.Errorf("%s: a token opens repositories by https only", r.URL)
		}
		// Not on the command line, which others can see.
		g.env = append(g.env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.https://x-access-token:"+a.Token+"@"+u.Host+
			"/.insteadOf", "GIT_CONFIG_VALUE_0=https://"+u.Host+"/")
	}
	if a.Identity != "" {
		g.env = append(g.env, "GIT_SSH_COMMAND=ssh -o IdentitiesOnly=yes -o StrictHostKeyChecking=accept-new "+
			"-o BatchMode=yes -i '"+strings.ReplaceAll(a.Identity, "'", `'\''`)+"'")
	}
	ref := "HEAD"
	if r.Branch != "" {
		ref = "refs/heads/" + r.Branch
	}
	out, err := g.run("ls-remote", "--", at, ref)
	if err != nil {
		text := err.Error()
		if a.Token != "" {
			text = strings.ReplaceAll(text, a.Token, "***")
		}
		return fmt.Errorf("%s cannot be read: %s", r.URL, text)
	}
	if len(out) == 0 && r.Branch != "" {
		return fmt.Errorf("%s has no branch %s", r.URL, r.Branch)
	}
	return nil
}
