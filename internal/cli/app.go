package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core/plain"
)

// App is what the commands touch of the world.
type App struct {
	Version  string
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // In is a terminal: questions can be asked
	Connect  func() (*client.Client, error)
	Now      func() time.Time
	Lookup   func(name string) (string, bool) // the caller's environment
	Links    []string                         // names of the commands that links are made for
	Pages    func() map[string]string         // their manual pages, by name
	Exe      func() (string, error)           // path of this program
	// Interrupts tells of Ctrl-C from the call on, until stop is called; nil: there is none.
	Interrupts func() (c <-chan os.Signal, stop func())

	began       bool // a command has taken over: what goes wrong from here on is not the command line's fault
	interrupted bool // a question was answered by Ctrl-C
}

// Run runs one command line (without the program's name) and gives the exit status.
func (a *App) Run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	err := root.ExecuteContext(ctx)
	if a.interrupted {
		return ExitInterrupted
	}
	if err != nil && !a.began {
		err = usagef("%s", strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", " "))
	}
	var status *statusError
	interrupted := errors.Is(err, context.Canceled) // whoever did it knows
	if err != nil && !errors.As(err, &status) && !interrupted {
		fmt.Fprintln(a.Err, plain.Message(message(err)))
	}
	return exitCode(err)
}

func (a *App) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "bireme",
		Short:         "run jobs on a Bireme cluster",
		Long:          "bireme runs and steers jobs on a Bireme cluster.\n\nUnder the name of a Slurm command (see `bireme links`), or with it as first word, it is that command.",
		Version:       a.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
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
	add("run", a.applyCommand(), a.psCommand(), a.logsCommand(), a.sshCommand(), a.stopCommand(), a.checkpointCommand(), a.whyCommand(), a.metricsCommand(), a.eventsCommand())
	add("cluster", a.nodesCommand(), a.fleetCommand(), a.nodeStateCommand("drain"), a.nodeStateCommand("resume"), a.nodeStateCommand("down"),
		a.usersCommand(), a.projectsCommand(), a.policyCommand(), a.qosCommand(), a.reservationCommand(), a.licenseCommand(), a.reconfigureCommand(), a.auditCommand(), a.tokenCommand())
	add("self", a.loginCommand(), a.whoamiCommand(), a.simulateCommand(), a.linksCommand(), a.versionCommand())
	a.completions(root)
	plainUsage(root)
	return root
}

// noSuchCommand is the Args of commands that only hold others.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "; see `" + cmd.CommandPath() + " --help`"
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("there is no command %q%s", cmd.CommandPath()+" "+args[0], hint)
}

// oneFlag refuses two flags that contradict each other.
func oneFlag(cmd *cobra.Command, a, b string) error {
	if cmd.Flags().Changed(a) && cmd.Flags().Changed(b) {
		return usagef("%s: --%s and --%s exclude each other", strings.TrimPrefix(cmd.CommandPath(), "bireme "), a, b)
	}
	return nil
}

func (a *App) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(a.Out, "bireme", a.Version) },
	}
}

// project gives the project to act in: the flag's, that of the settings, or the one the server takes for the caller's.
func project(ctx context.Context, c *client.Client, flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if p := c.Settings().Project; p != "" {
		return p, nil
	}
	me, err := c.Whoami(ctx)
	if err != nil {
		return "", err
	}
	return string(me.Project), nil
}

// printJSON writes v for programs.
func (a *App) printJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := a.Out.Write(plain.JSON(b.Bytes()))
	return err
}

// note tells the user something that is not the result.
func (a *App) note(format string, args ...any) {
	fmt.Fprintln(a.Err, plain.Message(fmt.Sprintf(format, args...)))
}

// confirm asks a question. Without a terminal there is nobody to ask, and whoever typed the command meant it.
func (a *App) confirm(yes bool, format string, args ...any) bool {
	if yes || !a.Terminal {
		return true
	}
	return a.ask(format, args...)
}

// ask asks on the terminal; anything but y or yes means no. Ctrl-C ends the program, also where it was typed before: whatever
// else waits for it is past.
func (a *App) ask(format string, args ...any) bool {
	if a.interrupted {
		return false
	}
	var interrupts <-chan os.Signal
	if a.Interrupts != nil {
		c, stop := a.Interrupts()
		defer stop()
		interrupts = c
	}
	fmt.Fprint(a.Err, plain.Message(fmt.Sprintf(format, args...))+" [y/N] ")
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.In).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return true
		}
	case <-interrupts:
		fmt.Fprintln(a.Err)
		a.interrupted = true
	}
	return false
}

// wait blocks for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
