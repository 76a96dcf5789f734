package scancel

import (
	"strings"

	"bireme.dev/bireme/internal/core"
	"bireme.dev/bireme/internal/slurm"
	"bireme.dev/bireme/internal/slurm/cmd"
	"bireme.dev/bireme/internal/slurm/getopt"
)

// addEnvironment adds the options that variables stand for, where the command line does not give them.
func addEnvironment(w *cmd.World, f *cmd.Flags) error {
	given := *f
	add := func(option, value string) {
		if !given.Has(option) {
			f.Values = append(f.Values, getopt.Value{Key: option, Value: value, Set: true, Option: "--" + option})
		}
	}
	for _, option := range []string{"account", "name", "partition", "qos", "user", "wckey"} {
		if value, ok := w.Lookup(variable(option)); ok {
			add(option, value)
		}
	}
	if value, ok := w.Lookup(variable("state")); ok {
		for _, word := range cmd.SplitList(value) {
			if s, ok := core.ParseJobState(word); !ok || s.Final() {
				return &slurm.Complaint{Exit: slurm.ExitError, Lines: []string{
					"Unrecognized SCANCEL_STATE value: " + word, validStates,
				}}
			}
		}
		add("state", value)
	}
	for _, option := range []string{"batch", "full", "interactive", "verbose"} {
		value, ok := w.Lookup(variable(option))
		switch word := strings.ToLower(value); {
		case !ok || word == "f" || word == "false":
		case word == "t" || word == "true":
			add(option, "")
		default:
			w.Errorf("Unrecognized %s value: %s", variable(option), value)
		}
	}
	return nil
}

func variable(option string) string { return "SCANCEL_" + strings.ToUpper(option) }

const validStates = "Valid job states are PENDING, RUNNING, and SUSPENDED"
