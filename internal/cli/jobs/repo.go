package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/gitrepo"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/convert"
	"bireme.dev/bireme/internal/dstack/wire"
	"bireme.dev/bireme/internal/wire/parcel"
)

// repoOptions say which repository a run begins with, in place of what its configuration says.
type repoOptions struct {
	repo, branch, hash string
	none               bool
	access             gitrepo.Access
}

func (o *repoOptions) register(f *pflag.FlagSet) {
	f.StringVarP(&o.repo, "repo", "P", "", "begin with the git repository `PATH` or URL")
	f.StringVar(&o.branch, "repo-branch", "", "its `BRANCH`")
	f.StringVar(&o.hash, "repo-hash", "", "its commit `HASH`")
	f.BoolVar(&o.none, "no-repo", false, "begin without a repository")
	f.StringVarP(&o.access.Token, "token", "t", "", "an access `TOKEN` of a private repository, for https")
	f.StringVar(&o.access.Identity, "git-identity", "", "`FILE` of a private key of a private repository, for ssh")
}

// apply puts the options into a configuration.
func (o *repoOptions) apply(c *config.Configuration) error {
	run := c.Run()
	switch {
	case o.none && o.repo != "":
		return app.Usagef("--no-repo and --repo cannot be used together")
	case o.none:
		run.Repos = []config.Repo{}
	case o.repo != "":
		doc, err := json.Marshal(map[string]any{"type": "task", "commands": []string{":"}, "repos": []string{o.repo}})
		if err != nil {
			return err
		}
		said, err := config.ReadJSON(doc)
		if err != nil {
			return app.Usagef("--repo %s: %v", o.repo, err)
		}
		run.Repos = said.Run().Repos
	}
	if (o.branch != "" || o.hash != "") && len(run.Repos) == 0 {
		return app.Usagef("--repo-branch and --repo-hash need a repository: --repo, or repos in the file")
	}
	if o.branch != "" {
		run.Repos[0].Branch = &o.branch
	}
	if o.hash != "" {
		run.Repos[0].Hash = &o.hash
	}
	return nil
}

// find reads the repository of a run; nil: it has none. Paths are those from the directory of its file.
func (o *repoOptions) find(ctx context.Context, c *config.Configuration, dir string) (*gitrepo.Repo, error) {
	list := c.Run().Repos
	if len(list) == 0 {
		return nil, nil
	}
	of := &list[0]
	if of.URL != nil {
		return gitrepo.Remote(*of.URL, config.Value(of.Branch), config.Value(of.Hash)), nil
	}
	at := config.Value(of.Local)
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	r, err := gitrepo.Local(ctx, at)
	if err != nil {
		return nil, config.Faults{c.Fault(err.Error(), "repos", 0)}
	}
	if of.Branch != nil || of.Hash != nil { // another state than that of the working copy
		r.Branch, r.Hash, r.Diff = config.Value(of.Branch), config.Value(of.Hash), nil
	}
	return r, nil
}

// describeRepo puts the repository into the run's description.
func describeRepo(s *convert.Spec, r *gitrepo.Repo) error {
	id := r.ID()
	optional := func(text string) *string {
		if text == "" {
			return nil
		}
		return &text
	}
	data, err := json.Marshal(map[string]any{
		"repo_type": "remote", "repo_name": r.ShortName(), "repo_branch": optional(r.Branch), "repo_hash": optional(r.Hash),
		"repo_config_name": optional(r.Name), "repo_config_email": optional(r.Email),
	})
	if err != nil {
		return err
	}
	s.RepoID, s.RepoData = &id, data
	if r.Diff != nil {
		sum := fmt.Sprintf("%x", sha256.Sum256(r.Diff))
		s.RepoCodeHash = &sum
	}
	return nil
}

// InitRepo tells the project of a repository, and the server how the caller clones it.
func InitRepo(ctx context.Context, d client.Dstack, r *gitrepo.Repo, a gitrepo.Access) error {
	creds := &wire.RepoCreds{CloneURL: r.URL}
	if a.Token != "" {
		creds.OAuthToken = &a.Token
	}
	if a.Identity != "" {
		key, err := os.ReadFile(a.Identity)
		if err != nil {
			return app.Usagef("--git-identity %s: no such file", a.Identity)
		}
		text := string(key)
		creds.PrivateKey = &text
	}
	return d.Post(ctx, "repos/init", map[string]any{
		"repo_id": r.ID(), "repo_info": map[string]any{"repo_type": "remote", "repo_name": r.ShortName()},
		"repo_creds": creds,
	}, nil)
}

// withRepo has the run begin with a repository: it gives what goes along with the run, the changes of a working copy
// among it.
func (o *applyOptions) withRepo(ctx context.Context, c *client.Client, s *convert.Spec, r *gitrepo.Repo, file string,
	files []byte,
) ([]byte, error) {
	if err := o.bringRepo(ctx, c, r); err != nil {
		return nil, err
	}
	if err := describeRepo(s, r); err != nil || r.Diff == nil {
		return files, err
	}
	item, remove, err := changesItem(s, r, o.name)
	defer remove()
	if err != nil {
		return nil, err
	}
	return o.pack(s, file, item)
}

// bringRepo makes the repository known to the server, unless the caller has given access to it before.
func (o *applyOptions) bringRepo(ctx context.Context, c *client.Client, r *gitrepo.Repo) error {
	d := o.server(c)
	if o.repos.access == (gitrepo.Access{}) {
		var known wire.RepoHeadWithCreds
		err := d.Post(ctx, "repos/get", map[string]any{"repo_id": r.ID(), "include_creds": true}, &known)
		if err == nil && known.RepoCreds != nil {
			return nil
		}
		if err := r.Check(ctx, gitrepo.Access{}); err != nil {
			return fmt.Errorf("repos: %w; for a private one give --token or --git-identity, or `%s init`", err, o.app.Name())
		}
	} else if err := r.Check(ctx, o.repos.access); err != nil {
		return fmt.Errorf("repos: %w", err)
	}
	return InitRepo(ctx, d, r, o.repos.access)
}

// changesItem is the file with the changes of a working copy, as an item of what goes along.
func changesItem(s *convert.Spec, r *gitrepo.Repo, run string) (item parcel.Item, remove func(), err error) {
	list, err := (&convert.Spec{RepoData: s.RepoData, Configuration: s.Configuration}).Archives(run, nil, r.Diff)
	if err != nil || len(list) == 0 {
		return item, func() {}, err
	}
	f, err := os.CreateTemp("", "bireme-changes-")
	if err != nil {
		return item, func() {}, err
	}
	remove = func() { _ = os.Remove(f.Name()) }
	_, err = f.Write(r.Diff)
	if fault := f.Close(); err == nil {
		err = fault
	}
	return parcel.Item{Local: f.Name(), Path: list[0].Path}, remove, err
}
