package conf

import (
	"fmt"
	"strings"
	"time"

	"bireme.dev/bireme/internal/config"
)

// requeueDelay is how long Slurm lets a job wait that went back to the queue.
const requeueDelay = config.Duration(120 * time.Second)

func exitCodes(at func(*config.Config) *string) set {
	return func(v *converter, s Setting) error {
		_, err := config.ParseExitCodes(s.Value)
		*at(v.cfg) = s.Value
		return err
	}
}

// toFlag reads a number that is a switch.
func toFlag(at func(*config.Config) *bool) set {
	return func(v *converter, s Setting) error {
		n, err := integer(s.Value, 1<<16-1)
		*at(v.cfg) = n != 0
		return err
	}
}

// dependencyParameters reads what becomes of dependencies; the words that concern several clusters say nothing here.
func dependencyParameters(v *converter, s Setting) error {
	for word := range strings.SplitSeq(strings.ToLower(s.Value), ",") {
		name, value, _ := strings.Cut(word, "=")
		switch {
		case name == "kill_invalid_depend":
			v.cfg.Jobs.KillInvalidDep = true
		case name == "disable_remote_singleton":
			v.note(s.Where, s.Key, word, "there is one cluster")
		case name == "max_depend_depth":
			if _, err := integer(value, 1<<31); err != nil {
				return err
			}
			v.note(s.Where, s.Key, word, "circles of dependencies are always found")
		default:
			return fmt.Errorf("%q: expected kill_invalid_depend, disable_remote_singleton or max_depend_depth=N", word)
		}
	}
	return nil
}

// prologFlags checks the words: what they ask for is how Prolog runs here, but for those that are told of.
func prologFlags(v *converter, s Setting) error {
	for word := range strings.SplitSeq(strings.ToLower(s.Value), ",") {
		switch strings.TrimSpace(word) {
		case "alloc", "contain", "x11":
		case "deferbatch":
			v.note(s.Where, s.Key, word, "the batch script waits for the Prolog of its own node")
		case "forcerequeueonfail", "nohold", "runinjob", "serial":
			v.note(s.Where, s.Key, word, notYet)
		default:
			return fmt.Errorf("%q is no flag of Prolog", word)
		}
	}
	return nil
}
