package jobs

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
	"bireme.dev/bireme/internal/dstack"
	"bireme.dev/bireme/internal/dstack/config"
	"bireme.dev/bireme/internal/dstack/config/tree"
)

func configCommand(a *app.App) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "check YAML configurations", Args: app.NoSuchCommand}
	c.AddCommand(validateCommand(a))
	return c
}

func validateCommand(a *app.App) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "validate [FILE]", Short: "check a YAML configuration", Args: cobra.MaximumNArgs(1),
		Long: `Check a YAML configuration of any type, or profiles.yml, and print it in its normal
form: every property with its default, as a client sends it. What is wrong is listed,
all of it, with its path, line and column; the exit status is then 2. Nothing is asked
of a server. Without FILE it takes .dstack.yml or .dstack.yaml of the current folder;
- is standard input.`,
		RunE: func(_ *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			name, src, err := ReadConfiguration(a, "config validate", file)
			if err != nil {
				return err
			}
			return validate(a, name, src, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print faults as JSON, on standard output")
	return c
}

// validate prints the normal form of a configuration, or its faults.
func validate(a *app.App, name string, src []byte, asJSON bool) error {
	var out any
	var err error
	if config.IsProfiles(src) {
		out, err = config.ReadProfiles(src)
	} else {
		out, err = config.ReadNamed(src, checkName)
	}
	var faults config.Faults
	switch {
	case errors.As(err, &faults) && asJSON:
		if err := a.PrintJSON(faults); err != nil {
			return err
		}
		return &app.StatusError{Code: app.ExitUsage}
	case errors.As(err, &faults):
		return faults.In(name)
	case err != nil:
		return err
	}
	return a.PrintJSON(out)
}

// ReadConfiguration finds and reads a configuration: FILE, - for standard input, "" for the usual name.
func ReadConfiguration(a *app.App, command, file string) (name string, src []byte, err error) {
	if file == "-" {
		src, err = io.ReadAll(io.LimitReader(a.In, tree.MaxSize+1))
		return "(standard input)", src, err
	}
	name = file
	if name == "" {
		for _, n := range []string{".dstack.yml", ".dstack.yaml"} {
			if _, err := os.Stat(n); err == nil {
				name = n
				break
			}
		}
		if name == "" {
			return "", nil, app.Usagef("%s: there is no .dstack.yml in this directory; give the file%s", command, withF(command))
		}
	}
	f, err := os.Open(name)
	if err == nil {
		defer f.Close()
		src, err = io.ReadAll(io.LimitReader(f, tree.MaxSize+1))
	}
	var pe *fs.PathError
	if errors.As(err, &pe) { // not there, not readable, a directory
		option := name
		if withF(command) != "" {
			option = "-f " + name
		}
		return "", nil, app.Usagef("%s: %s: %s", command, option, pe.Err)
	}
	return name, src, err
}

// withF is the option that apply takes its file by.
func withF(command string) string {
	if command == "apply" {
		return " with -f"
	}
	return ""
}

// checkName checks the name that a configuration gives itself, which its form allows more of than a server takes.
func checkName(kind config.Kind, name string) error {
	switch kind {
	case config.KindFleet, config.KindVolume, config.KindGateway:
		return dstack.CheckOtherName(string(kind), name)
	default:
		return dstack.CheckName(name)
	}
}
