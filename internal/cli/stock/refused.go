package stock

import (
	"fmt"

	"github.com/spf13/cobra"

	"bireme.dev/bireme/internal/cli/app"
)

// option is one of a command that is refused.
type option struct {
	name, short string
	kind        byte // b: bool, s: string, l: list of strings, n: number
}

// verb is a command that is refused: its usage and options.
type verb struct {
	use     string
	args    cobra.PositionalArgs
	options []option
}

// presetList are the options of `preset` and `preset list`.
var presetList = []option{
	{"verbose", "v", 'b'},
	{"watch", "w", 'b'},
	{"json", "", 'b'},
	{"all", "a", 'b'},
	{"last", "n", 'n'},
	{"base", "", 's'},
	{"repo", "", 's'},
}

// presetCreate are those of `preset create`, except for those of a run.
var presetCreate = []option{
	{"file", "f", 's'},
	{"name", "n", 's'},
	{"profile", "", 's'},
	{"no-profile", "", 'b'},
	{"max-price", "", 's'},
	{"max-duration", "", 's'},
	{"backend", "b", 'l'},
	{"region", "r", 'l'},
	{"instance-type", "", 'l'},
	{"fleet", "", 'l'},
	{"reuse", "R", 'b'},
	{"dont-destroy", "", 'b'},
	{"idle-duration", "", 's'},
	{"spot", "", 'b'},
	{"on-demand", "", 'b'},
	{"spot-auto", "", 'b'},
	{"spot-policy", "", 's'},
	{"retry", "", 'b'},
	{"no-retry", "", 'b'},
	{"retry-duration", "", 's'},
	{"keep-service", "", 'b'},
	{"trials", "", 'n'},
	{"previous", "", 'l'},
	{"yes", "y", 'b'},
}

var keepService = []option{{"keep-service", "", 'b'}}

// refused are commands that are read whole, so that a wrong option is told, and then say why they do nothing.
func refused() []*cobra.Command {
	yes := []option{{"yes", "y", 'b'}}
	exports := "exports and imports of fleets are not available: projects share nodes through partitions " +
		"(AllowAccounts, `bireme project`)"
	presets := "presets are not available yet"
	return []*cobra.Command{
		group("export", exports, nil, []verb{
			{"list", cobra.NoArgs, nil},
			{"create NAME", cobra.ExactArgs(1), []option{
				{"importer", "", 'l'}, {"fleet", "", 'l'}, {"gateway", "", 'l'}, {"global", "", 'b'},
			}},
			{"update NAME", cobra.ExactArgs(1), []option{
				{"add-importer", "", 'l'},
				{"remove-importer", "", 'l'},
				{"add-fleet", "", 'l'},
				{"remove-fleet", "", 'l'},
				{"add-gateway", "", 'l'},
				{"remove-gateway", "", 'l'},
				{"set-global", "", 'b'},
				{"unset-global", "", 'b'},
			}},
			{"delete NAME", cobra.ExactArgs(1), yes},
		}),
		group("import", exports, nil, []verb{{"list", cobra.NoArgs, nil}, {"delete NAME", cobra.ExactArgs(1), yes}}),
		group("preset", presets, presetList, []verb{
			{"list", cobra.NoArgs, presetList},
			{"get ID", cobra.ExactArgs(1), []option{{"json", "", 'b'}}},
			{"create", cobra.NoArgs, presetCreate},
			{"logs ID", cobra.ExactArgs(1), append([]option{{"follow", "f", 'b'}}, keepService...)},
			{"stop ID", cobra.ExactArgs(1), yes},
			{"resume ID", cobra.ExactArgs(1), keepService},
			{"export ID", cobra.ExactArgs(1), []option{{"file", "f", 's'}, {"name", "n", 's'}, {"force", "", 'b'}}},
			{"push ID PROJECT/NAME", cobra.ExactArgs(2), nil},
			{"pull PROJECT/NAME", cobra.ExactArgs(1), nil},
			{"delete [ID]", cobra.MaximumNArgs(1), append([]option{{"base", "", 's'}, {"repo", "", 's'}}, yes...)},
		}),
	}
}

// group makes a command and those below it, all of which say why.
func group(name, why string, own []option, verbs []verb) *cobra.Command {
	refuse := func(*cobra.Command, []string) error { return fmt.Errorf("%s", why) }
	c := &cobra.Command{Use: name, Short: why, Args: app.NoSuchCommand, RunE: refuse, Hidden: true}
	c.PersistentFlags().String("project", "", "`PROJECT` to look at or act in")
	register(c, own)
	for _, v := range verbs {
		sub := &cobra.Command{Use: v.use, Short: why, Args: v.args, RunE: refuse}
		register(sub, v.options)
		c.AddCommand(sub)
	}
	return c
}

func register(c *cobra.Command, options []option) {
	f := c.Flags()
	for _, o := range options {
		switch o.kind {
		case 'b':
			f.BoolP(o.name, o.short, false, "as in dstack")
		case 's':
			f.StringP(o.name, o.short, "", "as in dstack")
		case 'l':
			f.StringArrayP(o.name, o.short, nil, "as in dstack")
		case 'n':
			f.IntP(o.name, o.short, 0, "as in dstack")
		}
	}
}
