package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bireme.dev/bireme/internal/cli/app"
)

// TestDstackTakesAllOptions: every command of dstack's CLI is there under the name dstack, with every option, in the
// long and the short form, and takes a value where that does.
func TestDstackTakesAllOptions(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/dstack-options.txt")
	if err != nil {
		t.Fatal(err)
	}
	a := &App{App: app.App{Out: new(bytes.Buffer), Err: new(bytes.Buffer), Dstack: true}, Version: "1"}
	root := a.dstackRoot()
	root.InitDefaultCompletionCmd("bash")
	var c *cobra.Command
	commands, options := 0, 0
	for line := range strings.Lines(string(data)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "command":
			commands++
			path := strings.Split(words[1], "/")
			if words[1] == "." {
				path = nil
			}
			found, rest, err := root.Find(path)
			if err != nil || len(rest) > 0 {
				t.Errorf("there is no command %s", words[1])
				c = nil
				continue
			}
			c = found
			if len(words) > 3 && !c.HasAlias(words[3]) {
				t.Errorf("%s has no other name %s", words[1], words[3])
			}
		case c != nil:
			options++
			checkStockOption(t, c, words)
		}
	}
	if commands < 55 || options < 250 {
		t.Errorf("%d commands and %d options: the list is not whole", commands, options)
	}
}

func checkStockOption(t *testing.T, c *cobra.Command, words []string) {
	t.Helper()
	_ = c.InheritedFlags() // adds those of the commands above
	f := c.Flag(strings.TrimPrefix(words[1], "--"))
	if f == nil {
		t.Errorf("%s takes no %s", c.CommandPath(), words[1])
		return
	}
	if len(words) > 2 && "-"+f.Shorthand != words[2] {
		t.Errorf("%s: %s is not %s, but -%s", c.CommandPath(), words[2], words[1], f.Shorthand)
	}
	kind := "value"
	if f.NoOptDefVal != "" {
		kind = "flag"
	} else if _, list := f.Value.(pflag.SliceValue); list {
		kind = "list"
	}
	if kind != words[0] && !f.Hidden {
		t.Errorf("%s: %s is a %s, not a %s", c.CommandPath(), words[1], kind, words[0])
	}
}

// TestRefusedCommandsSayWhy: what cannot mean anything here is refused with a reason, not as unknown.
func TestRefusedCommandsSayWhy(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"export list", "import delete x -y", "preset push a b/c", "server -p 1", "login --url x",
	} {
		var errs bytes.Buffer
		a := &App{App: app.App{Out: new(bytes.Buffer), Err: &errs, Dstack: true}, Version: "1"}
		if code := a.Run(t.Context(), strings.Fields(line)); code != app.ExitFailed || len(errs.String()) < 20 {
			t.Errorf("dstack %s: %d %q", line, code, errs.String())
		}
	}
}
