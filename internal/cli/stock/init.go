package stock

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/gitrepo"
	"bireme.dev/bireme/internal/cli/jobs"
)

type initOptions struct {
	base
	repo, token, identity string
}

func initCommand(a *app.App) *cobra.Command {
	o := &initOptions{base: base{App: a}}
	c := &cobra.Command{
		Use: "init", Short: "let runs clone a git repository", Args: cobra.NoArgs,
		Long: `Tell the project of a git repository and how you clone it: with a token or a private key for a private one,
which are kept sealed and given to your own runs only. Without --repo it is the one of the current folder.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.projectFlag(c)
	f := c.Flags()
	f.StringVarP(&o.repo, "repo", "P", "", "`PATH` or URL of the repository")
	f.StringVarP(&o.token, "token", "t", "", "an access `TOKEN`, for https")
	f.StringVar(&o.identity, "git-identity", "", "`FILE` of a private key, for ssh")
	return c
}

func (o *initOptions) run(ctx context.Context) error {
	var r *gitrepo.Repo
	var err error
	if strings.Contains(o.repo, "://") || strings.Contains(o.repo, "@") {
		r = gitrepo.Remote(o.repo, "", "")
	} else {
		dir := o.repo
		if dir == "" {
			dir = "."
		}
		if r, err = gitrepo.Local(ctx, dir); err != nil {
			return err
		}
	}
	access := gitrepo.Access{Token: o.token, Identity: o.identity}
	if access.Identity != "" {
		if _, err := os.Stat(access.Identity); err != nil {
			return app.Usagef("--git-identity %s: no such file", access.Identity)
		}
	}
	if err := r.Check(ctx, access); err != nil {
		return err
	}
	d, err := o.server(ctx)
	if err != nil {
		return err
	}
	if err := jobs.InitRepo(ctx, d, r, access); err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Out, "OK")
	return err
}
