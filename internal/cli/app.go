package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/admin"
	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/cli/jobs"
	"bireme.dev/bireme/internal/cli/moving"
	"bireme.dev/bireme/internal/cli/moving/slurmsite"
	"bireme.dev/bireme/internal/cli/nodes"
	"bireme.dev/bireme/internal/cli/simulate"
	"bireme.dev/bireme/internal/cli/stock"
	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core/plain"
)

// App is the program: what its commands share, and what `bireme links` makes.
type App struct {
	app.App
	Version string
	Links   []string                 // names of the commands that links are made for
	Pages   func() map[string]string // their manual pages, by name
	Exe     func() (string, error)   // path of this program
	Notice  client.Option            // tells the user that a server is away

	began bool // a command has taken over: what goes wrong from here on is not the command line's fault
}

// Run runs one command line (without the program's name) and gives the exit status.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	if a.Dstack {
		root = a.dstackRoot()
	}
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	if a.Interrupted() {
		return a.status(app.ExitInterrupted, nil)
	}
	if words := flagGroupError(err); words != "" {
		err = app.Usagef("%s", words)
	} else if err != nil && !a.began {
		err = app.Usagef("%s", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " "))
	}
	var status *app.StatusError
	interrupted := errors.Is(err, context.Canceled) // whoever did it knows
	if err != nil && !errors.As(err, &status) && !interrupted {
		fmt.Fprintln(a.Err, plain.Message(a.message(err)))
	}
	return a.status(app.ExitCode(err), err)
}

// message words an error; dstack's CLI puts no name before it.
func (a *App) message(err error) string {
	text := app.Message(err)
	if a.Dstack {
		text = strings.ReplaceAll(strings.TrimPrefix(text, "bireme: "), "\nbireme: ", "\n")
	}
	return text
}

// status is the exit status: dstack's CLI knows 0, 1 and, for a command line that is wrong, 2.
func (a *App) status(code int, err error) int {
	if a.Dstack && code != app.ExitOK && !app.IsUsage(err) {
		return app.ExitFailed
	}
	return code
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "bireme",
		Short: "run jobs on a Bireme cluster",
		Long: "bireme runs and manages jobs on a Bireme cluster.\n\nUnder the name of a Slurm command (see " +
			"`bireme links`), or with it as first word, it is that command.",
		Version:       a.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          app.NoSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
	}
	root.SetVersionTemplate("bireme {{.Version}}\n")
	root.SetCompletionCommandGroupID("self")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.SuggestionsMinimumDistance = 2
	root.AddGroup(&cobra.Group{ID: "run", Title: "Runs and jobs:"}, &cobra.Group{ID: "cluster", Title: "The cluster:"},
		&cobra.Group{ID: "self", Title: "You and this tool:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("run", jobs.Commands(&a.App)...)
	add("run", moving.ConvertCommand(&a.App))
	add("run", stock.Commands(&a.App)...)
	add("cluster", nodes.Commands(&a.App)...)
	add("cluster", admin.Commands(&a.App)...)
	add("cluster", moving.ImportCommand(&a.App, a.Exe), slurmsite.MigrateCommand(&a.App, a.Exe))
	add("self", a.loginCommand(), a.whoamiCommand(), simulate.Command(&a.App), a.linksCommand(), a.manCommand(),
		a.versionCommand())
	a.completions(root)
	plainUsage(root)
	return root
}

// dstackRoot is the program under the name dstack.
func (a *App) dstackRoot() *cobra.Command {
	root := stock.Root(&a.App, a.Version)
	connect, began := a.Connect, root.PersistentPreRun
	project := ""
	root.PersistentPreRun = func(cmd *cobra.Command, args []string) {
		if a.began = true; began != nil {
			began(cmd, args)
		}
		if f := cmd.Flag("project"); f != nil {
			project = f.Value.String()
		}
	}
	var opts []client.Option
	if a.Notice != nil {
		opts = append(opts, a.Notice)
	}
	a.Connect = func() (*client.Client, error) { return stock.Connect(&a.App, project, connect, opts...) }
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	a.completions(root)
	plainUsage(root)
	return root
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(a.Out, "bireme", a.Version) },
	}
}
