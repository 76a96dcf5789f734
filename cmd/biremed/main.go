// Command biremed is the cluster's daemon: the server, a node's agent, or both on one machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/client"
	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/step/inherited"
)

var version = "dev" // set by the linker

func main() {
	args := client.HideArguments()[1:]
	if err := inherited.Keep(); err != nil { // from the programs that it starts
		os.Exit(complain(os.Stderr, err))
	}
	os.Exit(run(args, os.Stdout, os.Stderr))
}

// Exit codes of biremed; docs name them.
const (
	exitFailed  = 1 // it could not be done
	exitInvalid = 2 // it was asked for wrongly, or the settings have faults
)

func run(args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "biremed",
		Short:         "Bireme's server and agents",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noSuchCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetVersionTemplate("biremed {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.AddCommand(newServerCommand(), newConfigCommand(), newAgentCommand(), newStandaloneCommand(), newStopCommand(),
		newSealCommand(), newSetupCommand(), newBackupCommand(), newRestoreCommand(), newDoctorCommand(),
		newCACommand(), newNextJobCommand(), newReadDstackCommand(), newPAMCommand(), newManCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	return complain(stderr, err)
}

// complain tells an error with all its faults and gives the exit code.
func complain(w io.Writer, err error) int {
	fmt.Fprintln(w, "biremed:", err)
	var e *core.Error
	if !errors.As(err, &e) {
		return exitFailed
	}
	for _, f := range e.Faults {
		fmt.Fprintf(w, "  %s: %s\n", f.Path, f.Message)
	}
	if e.Code == core.Invalid {
		return exitInvalid
	}
	return exitFailed
}

// noSuchCommand is the Args of commands that only hold others.
func noSuchCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	hint := "; see `" + c.CommandPath() + " --help`"
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return core.Errorf(core.Invalid, "there is no command %q%s", c.CommandPath()+" "+args[0], hint)
}

// showHelp is the RunE of commands that only hold others: without one, cobra does not check what was typed.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }

// noOperands is the Args of commands that take flags only.
func noOperands(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return core.Errorf(core.Invalid, "unexpected argument %q: %s takes only options; see `%s --help`", args[0],
		c.CommandPath(),
		c.CommandPath())
}

var (
	badValue = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)
	badInt   = regexp.MustCompile(`^strconv\.Parse(Int|Uint|Float): parsing ".*": (.*)$`)
)

// flagError says in plain words what the library for options found.
func flagError(err error) error {
	text := err.Error()
	if m := badValue.FindStringSubmatch(text); m != nil {
		why := m[3]
		switch n := badInt.FindStringSubmatch(why); {
		case n != nil && strings.Contains(n[2], "out of range"):
			why = "the number is too large"
		case n != nil:
			why = "expected a whole number"
		case strings.HasPrefix(why, "strconv.ParseBool"):
			why = "expected true or false"
		case strings.HasPrefix(why, "time: "):
			why = "expected a duration, such as 30s or 5m"
		}
		text = m[2] + " " + m[1] + ": " + why
	}
	return core.Errorf(core.Invalid, "%s", text)
}
