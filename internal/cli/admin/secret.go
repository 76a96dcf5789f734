package admin

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
)

// secrets are the commands on the secrets of projects.
type secrets struct {
	*app.App
	project string
	json    bool
}

func newSecrets(a *app.App) *cobra.Command {
	s := &secrets{App: a}
	c := &cobra.Command{
		Use: "secret", Short: "list and change the secrets that runs of a project use", Args: cobra.NoArgs,
		Long: "Secrets are values that configurations name as ${{ secrets.NAME }}. They are sealed in the server's store; " +
			"administrators of the project see and change them.",
		RunE: func(cmd *cobra.Command, _ []string) error { return s.list(cmd.Context()) },
	}
	c.PersistentFlags().StringVar(&s.project, "project", "", "of `PROJECT`; without it your default project")
	c.PersistentFlags().BoolVar(&s.json, "json", false, "print JSON")
	c.AddCommand(
		&cobra.Command{
			Use: "list", Short: "list secrets, without their values", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return s.list(cmd.Context()) },
		},
		&cobra.Command{
			Use: "get NAME", Short: "print the value of a secret", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return s.get(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "set NAME [VALUE]", Short: "make a secret, or give it another value", Args: cobra.RangeArgs(1, 2),
			Long: "Make a secret, or give it another value. Without VALUE it is read from standard input, where " +
				"other users of " +
				"this machine cannot see it; one newline at its end is left out.",
			RunE: func(cmd *cobra.Command, args []string) error { return s.set(cmd.Context(), args) },
		},
		&cobra.Command{
			Use: "delete NAME...", Short: "delete secrets", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return s.delete(cmd.Context(), args) },
		},
	)
	return c
}

// connect finds the server and the project.
func (s *secrets) connect(ctx context.Context) (*client.Secrets, error) {
	c, err := s.Connect()
	if err != nil {
		return nil, err
	}
	project := core.ProjectName(s.project)
	if project == "" {
		me, err := c.Whoami(ctx)
		if err != nil {
			return nil, err
		}
		project = me.Project
	}
	return &client.Secrets{Client: c, Project: project}, nil
}

func (s *secrets) list(ctx context.Context) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	list, err := c.List(ctx)
	if err != nil {
		return err
	}
	if s.json {
		return s.PrintJSON(list)
	}
	t := app.Table{{"NAME", "VALUE", "BY", "CHANGED"}}
	for _, x := range list.Secrets {
		t.Row(x.Name, "******", string(x.By), app.Clock(max(x.Created, x.Changed)))
	}
	return t.Write(s.Out)
}

func (s *secrets) get(ctx context.Context, name string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	x, err := c.Get(ctx, name)
	if err != nil {
		return err
	}
	if s.json {
		return s.PrintJSON(x)
	}
	_, err = fmt.Fprintln(s.Out, x.Value)
	return err
}

func (s *secrets) set(ctx context.Context, args []string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if len(args) == 1 {
		const most = 64 << 10
		text, err := io.ReadAll(io.LimitReader(s.In, most))
		if err != nil {
			return err
		}
		args = append(args, strings.TrimSuffix(string(text), "\n"))
	}
	return c.Set(ctx, args[0], args[1])
}

func (s *secrets) delete(ctx context.Context, names []string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := c.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
