package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// plainUsage has every command say in plain words what is wrong with its arguments.
func plainUsage(root *cobra.Command) {
	for _, c := range root.Commands() {
		if check := c.Args; check != nil && c.RunE != nil {
			c.Args = func(cmd *cobra.Command, args []string) error {
				err := check(cmd, args)
				if err != nil && strings.Contains(err.Error(), "arg(s)") || err != nil &&
					strings.HasPrefix(err.Error(), "unknown command") {
					return countError(cmd, args, check)
				}
				return err
			}
		}
		plainUsage(c)
	}
}

// countError says that arguments are missing or too many, with what the command takes.
func countError(cmd *cobra.Command, args []string, check cobra.PositionalArgs) error {
	most := 0
	for n := range 10 {
		if check(cmd, make([]string, n)) == nil {
			most = n
		}
	}
	usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	switch {
	case len(args) > most && most == 0:
		return fmt.Errorf("unexpected argument %q: %s takes only options; see `%[2]s --help`", args[0], cmd.CommandPath())
	case len(args) > most:
		return fmt.Errorf("unexpected argument %q; usage: %s", args[most], usage)
	default:
		return fmt.Errorf("an argument is missing; usage: %s", usage)
	}
}

var (
	badValue = regexp.MustCompile(`^invalid argument (".*") for "(?:-\w, )?(--[\w-]+)" flag: (.*)$`)
	badInt   = regexp.MustCompile(`^strconv\.Parse(Int|Uint|Float): parsing ".*": (.*)$`)
)

// flagError says in plain words what the library for options found.
func flagError(err error) error {
	m := badValue.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	why := m[3]
	switch n := badInt.FindStringSubmatch(why); {
	case n != nil && strings.Contains(n[2], "out of range"):
		why = "the number is too large"
	case n != nil && n[1] == "Float":
		why = "expected a number"
	case n != nil:
		why = "expected a whole number"
	case strings.HasPrefix(why, "strconv.ParseBool"):
		why = "expected true or false"
	case strings.HasPrefix(why, "time: "):
		why = "expected a duration, such as 30s or 5m"
	}
	return fmt.Errorf("%s %s: %s", m[2], m[1], why)
}

var (
	badGroup = regexp.MustCompile(`^if any flags in the group .*; \[(.*)\] were all set$`)
	missing  = regexp.MustCompile(`^required flag\(s\) "(.*)" not set$`)
)

// flagGroupError says in plain words which options contradict each other or are missing; empty: that is not the error.
func flagGroupError(err error) string {
	if err == nil {
		return ""
	}
	if m := badGroup.FindStringSubmatch(err.Error()); m != nil {
		return "--" + strings.Join(strings.Fields(m[1]), " and --") + " cannot be used together"
	}
	if m := missing.FindStringSubmatch(err.Error()); m != nil {
		return "missing: --" + strings.ReplaceAll(m[1], `", "`, ", --")
	}
	return ""
}
