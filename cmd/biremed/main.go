// Command biremed is the cluster's daemon: the server, a node's agent, or both on one machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/core"
)

var version = "dev" // set by the linker

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

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
	}
	root.SetVersionTemplate("biremed {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return core.Errorf(core.Invalid, "%v", err) })
	root.AddCommand(newServerCommand(), newConfigCommand(), newAgentCommand(), newStandaloneCommand(), newStopCommand())
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
